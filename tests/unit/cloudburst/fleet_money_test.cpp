// SPDX-License-Identifier: Apache-2.0
// What would go on costing money: a ledger that cannot be written, machines that never come up.
#include "tests/support/fleet.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace acb::cloud {
namespace {

using std::chrono::seconds;

JobPhase phase(const Fleet& fleet, std::uint32_t job) {
  return fleet.slurm.jobs().at(job).seen.phase;
}

TEST(Fleet, AFullDiskDoesNotKeepMachinesFromBeingGivenBack) {
  Fleet fleet(9, 4);
  const auto job = fleet.slurm.submit(2, seconds(300), fleet.now);
  fleet.run(seconds(40));
  ASSERT_EQ(phase(fleet, job), JobPhase::running);
  fleet.disk_full = true;
  const int creates = fleet.count(CallKind::create);
  const auto waiting = fleet.slurm.submit(1, seconds(300), fleet.now);
  fleet.run(seconds(2));  // it gets a node that is off
  fleet.slurm.cancel(job);
  fleet.run(seconds(30));
  EXPECT_EQ(phase(fleet, waiting), JobPhase::configuring);
  for (const FakeCloud::Machine& machine : fleet.cloud.machines()) {
    EXPECT_FALSE(machine.is_billed()) << machine.key;
  }
  EXPECT_EQ(fleet.count(CallKind::create), creates);
  fleet.disk_full = false;
  fleet.slurm.cancel(waiting);
  fleet.run(seconds(60));
  EXPECT_EQ(fleet.leftovers(), "");
  EXPECT_TRUE(fleet.broken.empty()) << fleet.broken.front();
}

int starts_within(Fleet& fleet, std::uint32_t job, seconds time) {
  const std::uint32_t before = fleet.slurm.jobs().at(job).seen.restart;
  fleet.run(time);
  return static_cast<int>(fleet.slurm.jobs().at(job).seen.restart - before);
}

TEST(Fleet, AnImageThatNeverBootsIsRentedEverMoreSeldom) {
  Fleet fleet(6, 4);
  fleet.policy.boot_timeout = seconds(10);
  fleet.policy.first_delay = seconds(2);
  fleet.policy.last_delay = seconds(16);
  fleet.policy.longest_delay = seconds(600);
  fleet.cloud.faults.never_boots = 1;
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  const int first = starts_within(fleet, job, seconds(300));
  EXPECT_GE(first, 5);
  (void)starts_within(fleet, job, seconds(600));
  EXPECT_LE(starts_within(fleet, job, seconds(1800)), 4);
  const std::string& told = fleet.slurm.jobs().at(job).seen.admin_comment;
  EXPECT_NE(told.find("did not register"), std::string::npos) << told;
  EXPECT_NE(told.find("next try at"), std::string::npos) << told;
}

TEST(Fleet, AMachineThatSwitchesItselfOffIsToldAsSuchAndNotAsTakenBack) {
  Fleet fleet(6, 4);
  fleet.cloud.faults.switches_off = 1;
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  std::set<std::string> told;
  fleet.run(seconds(60), [&] { told.insert(fleet.slurm.jobs().at(job).seen.admin_comment); });
  const auto any_says = [&](const std::string& words) {
    return std::any_of(told.begin(), told.end(), [&](const std::string& comment) {
      return comment.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(any_says("switched itself off before it registered"));
  EXPECT_TRUE(any_says("renting another"));
  EXPECT_TRUE(any_says("went away 3 times before it registered, the last: ia-3 switched itself"));
  EXPECT_FALSE(any_says("the cloud took"));
}

TEST(Fleet, WantOfCapacityCostsNothingAndIsTriedAsOftenAsEver) {
  Fleet fleet(6, 4);
  fleet.policy.first_delay = seconds(2);
  fleet.policy.last_delay = seconds(16);
  fleet.cloud.faults.no_capacity = 1;
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  (void)starts_within(fleet, job, seconds(600));
  EXPECT_GE(starts_within(fleet, job, seconds(1800)), 50);
}

}  // namespace
}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// A site whose ledger cannot be written.
#include "tests/support/fleet.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace acb::cloud

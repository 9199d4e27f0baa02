// SPDX-License-Identifier: Apache-2.0
// What the user of a burst that gets no machines reads, and when it is tried again.
#include "tests/support/fleet.h"

#include <gtest/gtest.h>

#include <set>

namespace acb::cloud {
namespace {

using std::chrono::seconds;

JobPhase phase(const Fleet& fleet, std::uint32_t job) {
  return fleet.slurm.jobs().at(job).seen.phase;
}

TEST(Fleet, WithoutCapacityTheUserReadsWhyAndTheJobRunsOnceThereIsSome) {
  Fleet fleet(5, 4);
  fleet.cloud.faults.no_capacity = 1;
  const auto job = fleet.slurm.submit(2, seconds(30), fleet.now);
  fleet.run(seconds(20));
  const SlurmJob& seen = fleet.slurm.jobs().at(job).seen;
  EXPECT_EQ(seen.phase, JobPhase::pending);
  EXPECT_NE(seen.admin_comment.find("insufficient_capacity"), std::string::npos)
      << seen.admin_comment;
  EXPECT_NE(seen.admin_comment.find("req-1"), std::string::npos);
  EXPECT_NE(seen.admin_comment.find("next try at"), std::string::npos);
  EXPECT_TRUE(seen.admin_comment.starts_with("autocloud:v1 burst=2 own=1"));
  fleet.cloud.faults.no_capacity = 0;
  fleet.run(seconds(120));
  EXPECT_EQ(fleet.slurm.jobs().at(job).starts, 1);
  EXPECT_EQ(fleet.slurm.jobs().at(job).seen.admin_comment.find(" | "), std::string::npos);
  fleet.run(seconds(60));
  EXPECT_EQ(fleet.leftovers(), "");
}

TEST(Fleet, ABurstWhoseEveryAttemptFailsIsGivenUp) {
  Fleet fleet(5, 4);
  fleet.cloud.faults.no_capacity = 1;
  fleet.policy.offer_rest = seconds(0);
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  fleet.run(seconds(60));
  const std::string& told = fleet.slurm.jobs().at(job).seen.admin_comment;
  EXPECT_NE(told.find("12 attempts failed"), std::string::npos) << told;
}

TEST(Fleet, TheDelayGrowsWithEachFailureInARow) {
  Fleet fleet(6, 4);
  fleet.cloud.faults.never_boots = 1;
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  fleet.run(seconds(120));
  const std::string told = fleet.slurm.jobs().at(job).seen.admin_comment;
  std::vector<WallTime> tries;
  fleet.run(seconds(1500), [&] {
    if (phase(fleet, job) == JobPhase::configuring &&
        tries.size() <= fleet.slurm.jobs().at(job).seen.restart) {
      tries.push_back(fleet.now);
    }
  });
  EXPECT_NE(told.find("did not register within 100 s"), std::string::npos) << told;
  ASSERT_GE(tries.size(), 4U);
  for (std::size_t i = 2; i < tries.size(); ++i) {
    EXPECT_GT(tries[i] - tries[i - 1], tries[i - 1] - tries[i - 2] + seconds(20)) << i;
  }
  EXPECT_TRUE(fleet.broken.empty()) << fleet.broken.front();
}

// Slurm writes a new submit time at every requeue, so that each start of a job is a burst of its
// own.
TEST(Fleet, ReasonNextTryAndFailuresOutliveTheRequeues) {
  Fleet fleet(9, 4);
  fleet.cloud.faults.no_capacity = 1;
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  const std::vector<seconds> delays = {
      seconds(30), seconds(60), seconds(120), seconds(240), seconds(480), seconds(900)};
  std::set<WallTime> submits;
  for (std::size_t failure = 1; failure <= delays.size(); ++failure) {
    const auto restart = static_cast<std::uint32_t>(failure);
    for (int i = 0; i < 1000 && fleet.slurm.jobs().at(job).seen.restart < restart; ++i) {
      fleet.run(seconds(1));
    }
    const WallTime failed = fleet.now;
    fleet.run(seconds(5));
    const SlurmJob& seen = fleet.slurm.jobs().at(job).seen;
    ASSERT_EQ(seen.phase, JobPhase::pending) << failure;
    ASSERT_TRUE(submits.insert(seen.submit).second) << failure;
    const Burst& waits = fleet.book.bursts.at({job, restart, seen.submit});
    EXPECT_EQ(waits.fails, static_cast<int>(failure));
    EXPECT_NE(waits.told.find("insufficient_capacity"), std::string::npos) << waits.told;
    const Burst* last = fleet.book.start_before(waits.id);
    ASSERT_NE(last, nullptr) << failure;
    EXPECT_EQ(last->state, BurstState::failed);
    ASSERT_TRUE(last->retry_at) << failure;
    EXPECT_EQ(seen.begin, last->retry_at) << failure;
    const auto delay = *last->retry_at - failed;
    EXPECT_GE(delay, delays[failure - 1] - seconds(5)) << failure;
    EXPECT_LE(delay, delays[failure - 1] + seconds(1)) << failure;
    const std::string next = "next try at " + format_time(*last->retry_at).substr(0, 19);
    EXPECT_NE(seen.admin_comment.find(next), std::string::npos) << seen.admin_comment;
  }
  EXPECT_GE(fleet.count(CallKind::create), static_cast<int>(delays.size()));  // none was in vain
}

TEST(Fleet, WhileItIsTriedAgainTheUserStillReadsWhyItFailed) {
  Fleet fleet(5, 4);
  fleet.cloud.faults.no_capacity = 1;
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  int looks = 0;
  fleet.run(seconds(200), [&] {
    const SlurmJob& seen = fleet.slurm.jobs().at(job).seen;
    // The requeue may come a moment before the first words.
    if (seen.restart > 0 &&
        (looks > 0 || seen.admin_comment.find("insufficient_capacity") != std::string::npos)) {
      ++looks;
      EXPECT_NE(seen.admin_comment.find("insufficient_capacity"), std::string::npos)
          << seen.admin_comment;
    }
  });
  EXPECT_GT(looks, 100);
}

TEST(Fleet, ToldToWaitForLongItFreesItsNodesAndWaitsAsLong) {
  Fleet fleet(5, 4);
  fleet.cloud.faults.throttled = 1;
  fleet.cloud.faults.retry_after = seconds(600);
  const auto first = fleet.slurm.submit(1, seconds(30), fleet.now);
  const WallTime began = fleet.now;
  fleet.run(seconds(20));
  const auto second = fleet.slurm.submit(1, seconds(30), fleet.now);
  fleet.run(seconds(20));
  for (const auto job : {first, second}) {
    const SlurmJob& seen = fleet.slurm.jobs().at(job).seen;
    EXPECT_EQ(seen.phase, JobPhase::pending) << job;
    EXPECT_GE(seen.begin, began + seconds(600)) << job;
    EXPECT_NE(seen.admin_comment.find("rate_limited"), std::string::npos) << seen.admin_comment;
  }
  EXPECT_EQ(fleet.count(CallKind::offers), 1);
  fleet.cloud.faults = {};
  fleet.run(seconds(700));
  EXPECT_EQ(phase(fleet, first), JobPhase::ended);
  EXPECT_EQ(phase(fleet, second), JobPhase::ended);
}

TEST(Fleet, WhatWasNeverAnsweredIsAskedAgainUnderTheSameKey) {
  Fleet fleet(5, 1);
  fleet.cloud.faults.lost_create = 1;
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  for (int i = 0; i < 60 && fleet.slurm.jobs().at(job).seen.restart == 0; ++i) {
    fleet.run(seconds(1));
  }
  ASSERT_EQ(fleet.slurm.jobs().at(job).seen.restart, 1U);
  fleet.cloud.faults = {};
  fleet.run(seconds(75));  // the delay of 30 s and a boot; the key stays in doubt for longer
  EXPECT_EQ(fleet.slurm.jobs().at(job).starts, 1);
  EXPECT_EQ(fleet.cloud.machines().size(), 1U);
  EXPECT_EQ(fleet.book.leases.size(), 1U);
  fleet.run(seconds(60));
  EXPECT_EQ(fleet.leftovers(), "");
  EXPECT_TRUE(fleet.broken.empty()) << fleet.broken.front();
}

TEST(Fleet, ALongBootIsToldWithItsMachineWithinAMinute) {
  Fleet fleet(5, 4);
  fleet.policy.boot_timeout = seconds(600);
  fleet.cloud.faults.never_boots = 1;
  const auto job = fleet.slurm.submit(1, seconds(30), fleet.now);
  fleet.run(seconds(50));
  const std::string& told = fleet.slurm.jobs().at(job).seen.admin_comment;
  EXPECT_NE(told.find("still booting, not registered yet: burst-0 (ia-1, rented at 2026-"),
            std::string::npos)
      << told;
  EXPECT_NE(told.find("request req-"), std::string::npos) << told;
  EXPECT_NE(told.find("given up after 600 s"), std::string::npos) << told;
}

TEST(Fleet, ARefusedKeyStopsAtOnceWithTheReason) {
  Fleet fleet(8, 4);
  fleet.cloud.faults.refused = 1;
  const auto job = fleet.slurm.submit(2, seconds(30), fleet.now);
  fleet.run(seconds(20));
  EXPECT_NE(fleet.slurm.jobs().at(job).seen.admin_comment.find("auth: unauthorized"),
            std::string::npos);
  const int creates = fleet.count(CallKind::create);
  fleet.run(seconds(600));
  EXPECT_EQ(fleet.count(CallKind::create), creates);
}

}  // namespace
}  // namespace acb::cloud

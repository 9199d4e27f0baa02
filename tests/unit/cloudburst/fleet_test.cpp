// SPDX-License-Identifier: Apache-2.0
// Whole fleets under random faults: whatever fails, nothing is billed without a live lease, no node
// name has two machines, jobs run in the end, and everything is given back.
#include "tests/support/fleet.h"

#include "base/lost_host.h"

#include <gtest/gtest.h>

namespace acb::cloud {
namespace {

using std::chrono::seconds;

JobPhase phase(const Fleet& fleet, std::uint32_t job) {
  return fleet.slurm.jobs().at(job).seen.phase;
}

TEST(Fleet, ABurstBootsRunsAndIsGivenBack) {
  Fleet fleet(1, 4);
  const auto job = fleet.slurm.submit(2, seconds(30), fleet.now);
  fleet.run(seconds(40));
  EXPECT_EQ(phase(fleet, job), JobPhase::running);
  EXPECT_EQ(fleet.leases(LeaseState::up).size(), 2U);
  EXPECT_EQ(fleet.count(CallKind::create), 2);
  fleet.run(seconds(60));
  EXPECT_EQ(phase(fleet, job), JobPhase::ended);
  EXPECT_EQ(fleet.leftovers(), "");
  EXPECT_TRUE(fleet.broken.empty()) << fleet.broken.front();
}

TEST(Fleet, ACancelledBurstIsGivenBackWithinTenSeconds) {
  for (int after = 0; after < 25; ++after) {
    Fleet fleet(static_cast<std::uint64_t>(after) + 1, 4);
    const auto job = fleet.slurm.submit(2, seconds(300), fleet.now);
    fleet.run(seconds(after));
    fleet.slurm.cancel(job);
    fleet.run(seconds(10));
    for (const Lease* lease : fleet.leases(LeaseState::booting)) {
      ADD_FAILURE() << lease->key << " cancelled after " << after << " s still boots";
    }
    EXPECT_TRUE(fleet.leases(LeaseState::up).empty()) << after;
    fleet.run(seconds(30));
    EXPECT_EQ(fleet.leftovers(), "") << after;
    EXPECT_TRUE(fleet.broken.empty()) << fleet.broken.front();
  }
}

TEST(Fleet, NodesOfACancelledJobServeTheNextWithoutASecondMachine) {
  Fleet fleet(7, 2);
  const auto first = fleet.slurm.submit(2, seconds(300), fleet.now);
  const auto second = fleet.slurm.submit(2, seconds(30), fleet.now);
  fleet.run(seconds(5));
  fleet.slurm.cancel(first);
  fleet.run(seconds(25));
  ASSERT_EQ(phase(fleet, second), JobPhase::running);
  for (const Lease* lease : fleet.leases(LeaseState::up)) {
    EXPECT_EQ(lease->made_for.job, first);
    EXPECT_EQ(lease->owner.job, second);
  }
  fleet.run(seconds(35));
  EXPECT_EQ(fleet.slurm.jobs().at(second).starts, 1);
  EXPECT_EQ(fleet.count(CallKind::create), 2);
  fleet.run(seconds(60));
  EXPECT_EQ(fleet.leftovers(), "");
}

TEST(Fleet, ASuspendOrderTakesBackWhatWasRentedBeforeIt) {
  Fleet fleet(9, 2);
  (void)fleet.slurm.submit(1, seconds(300), fleet.now);
  fleet.run(seconds(40));
  ASSERT_EQ(fleet.leases(LeaseState::up).size(), 1U);
  const WallTime rented = fleet.leases(LeaseState::up).front()->created;
  Changes late;
  late.orders = {{"late", "suspend", {"burst-0"}, rented - seconds(1)}};
  fleet.book.apply(late);
  fleet.run(seconds(2));
  EXPECT_EQ(fleet.leases(LeaseState::up).size(), 1U);
  EXPECT_TRUE(fleet.book.orders.empty());
  late.orders.front().at = rented + seconds(1);
  fleet.book.apply(late);
  fleet.run(seconds(2));
  EXPECT_EQ(fleet.leases(LeaseState::up).size(), 0U);
}

TEST(Fleet, ALostNodeIsSetDownAtOnceAndComesBack) {
  Fleet fleet(3, 4);
  const auto job = fleet.slurm.submit(2, seconds(120), fleet.now);
  fleet.run(seconds(40));
  ASSERT_EQ(phase(fleet, job), JobPhase::running);
  fleet.cloud.take(fleet.cloud.running("burst-0")->id);
  fleet.run(seconds(10));
  EXPECT_EQ(phase(fleet, job), JobPhase::running);
  EXPECT_EQ(fleet.slurm.jobs().at(job).seen.nodes.size(), 2U);  // own-0 and burst-1
  EXPECT_GE(fleet.count(CallKind::set_down), 1);
  fleet.run(seconds(20));
  EXPECT_TRUE(fleet.slurm.nodes().at("burst-0").powered_down);
  EXPECT_FALSE(fleet.slurm.nodes().at("burst-0").down);
  fleet.run(seconds(120));
  EXPECT_EQ(fleet.leftovers(), "");
  EXPECT_TRUE(fleet.broken.empty()) << fleet.broken.front();
}

TEST(Fleet, AJobWithoutItsBatchHostIsRequeuedAndStartsAgainWithoutTheHold) {
  Fleet fleet(4, 4);
  const auto job = fleet.slurm.submit(2, seconds(120), fleet.now);
  fleet.run(seconds(40));
  ASSERT_EQ(phase(fleet, job), JobPhase::running);
  fleet.slurm.lose_batch_host(job);
  fleet.run(seconds(5));
  EXPECT_EQ(fleet.slurm.jobs().at(job).seen.restart, 1U);
  fleet.run(seconds(20));
  EXPECT_EQ(fleet.slurm.jobs().at(job).starts, 2);
  EXPECT_EQ(fleet.count(CallKind::create), 2);  // the same machines serve again
}

struct Sight {
  const char* name;
  bool responding;
  bool shared;
  const char* host;
  std::uint32_t restart;
  seconds ago;
  bool requeued;
};

TEST(Fleet, ABatchHostIsGivenUpOnceSlurmctldAndTheJobsNodesAgree) {
  const Sight sights[] = {
      {"both miss it", false, false, "own-0", 0, seconds(0), true},
      {"slurmctld reaches it", true, false, "own-0", 0, seconds(0), false},
      {"the nodes say nothing", false, false, "", 0, seconds(0), false},
      {"they mean another host", false, false, "own-1", 0, seconds(0), false},
      {"they said so of another start", false, false, "own-0", 1, seconds(0), false},
      {"they said so long ago", false, false, "own-0", 0, seconds(61), false},
      {"another job is on it", false, true, "own-0", 0, seconds(0), false},
  };
  for (const Sight& sight : sights) {
    Fleet fleet(4, 4);
    const auto job = fleet.slurm.submit(2, seconds(120), fleet.now);
    fleet.run(seconds(40));
    ASSERT_EQ(phase(fleet, job), JobPhase::running);
    fleet.slurm.own.responding = sight.responding;
    fleet.slurm.own.shared = sight.shared;
    if (*sight.host != '\0') {
      fleet.slurm.set_user_comment(
          job, with_lost_host("words", {sight.restart, sight.host, fleet.now - sight.ago}));
    }
    fleet.run(seconds(20));
    const FakeSlurm::Job& after = fleet.slurm.jobs().at(job);
    EXPECT_EQ(after.starts, sight.requeued ? 2 : 1) << sight.name;
    EXPECT_EQ(after.seen.restart, sight.requeued ? 1U : 0U) << sight.name;
    EXPECT_EQ(fleet.count(CallKind::set_down), sight.requeued ? 1 : 0) << sight.name;
    EXPECT_EQ(fleet.count(CallKind::create), 2) << sight.name;
  }
}

/// The ledger was moved away, as the error of a corrupt one advises.
void lose_ledger(Fleet& fleet) {
  fleet.ledger = {};
  fleet.crash_now(seconds(1));
}

TEST(Fleet, WithoutItsLedgerABootingBurstRunsAndNoNodeHasTwoMachines) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Fleet fleet(seed, 4);
    const auto job = fleet.slurm.submit(2, seconds(10), fleet.now);
    fleet.run(seconds(4));
    lose_ledger(fleet);
    fleet.run(seconds(300));
    EXPECT_EQ(phase(fleet, job), JobPhase::ended) << seed;
    EXPECT_EQ(fleet.leftovers(), "") << seed;
    for (const std::string& what : fleet.broken) {
      EXPECT_EQ(what.find("two "), std::string::npos) << seed << ": " << what;
    }
  }
}

TEST(Fleet, WithoutItsLedgerARunningBurstIsAdoptedAndACancelledOneGivenBack) {
  for (const bool cancelled : {false, true}) {
    Fleet fleet(11, 4);
    const auto job = fleet.slurm.submit(2, seconds(120), fleet.now);
    fleet.run(seconds(40));
    ASSERT_EQ(phase(fleet, job), JobPhase::running);
    lose_ledger(fleet);
    if (cancelled) {
      fleet.slurm.cancel(job);
    }
    fleet.run(seconds(40));
    EXPECT_EQ(fleet.leases(LeaseState::gone).size(), cancelled ? 2U : 0U);
    EXPECT_EQ(phase(fleet, job), cancelled ? JobPhase::ended : JobPhase::running);
    fleet.run(seconds(120));
    EXPECT_EQ(phase(fleet, job), JobPhase::ended);
    EXPECT_EQ(fleet.cloud.machines().size(), 2U);
    EXPECT_EQ(fleet.leftovers(), "");
  }
}

/// Machines that nobody can explain: of an attempt that was never made here, of an earlier start,
/// and of a lease that is closed.
TEST(Fleet, AMachineThatComesFromNowhereIsGivenBackWhileTheBurstRuns) {
  for (const char* key : {"sim/1/0/burst-0/7", "sim/1/1/burst-1/1", "sim/7/0/burst-2/1"}) {
    Fleet fleet(12, 4);
    const auto job = fleet.slurm.submit(2, seconds(200), fleet.now);
    fleet.run(seconds(40));
    ASSERT_EQ(phase(fleet, job), JobPhase::running);
    fleet.cloud.arrive_later(key, fleet.now);
    fleet.run(seconds(90));
    EXPECT_EQ(phase(fleet, job), JobPhase::running) << key;
    EXPECT_EQ(fleet.slurm.jobs().at(job).starts, 1) << key;
    EXPECT_EQ(fleet.leases(LeaseState::up).size(), 2U) << key;
    const auto found = fleet.book.leases.find(key);
    ASSERT_NE(found, fleet.book.leases.end()) << key;
    EXPECT_EQ(found->second.state, LeaseState::gone) << key;
    fleet.run(seconds(120));
    EXPECT_EQ(fleet.leftovers(), "") << key;
  }
}

TEST(Fleet, AMachineThatArrivesAfterItsLeaseWasClosedIsGivenBack) {
  Fleet fleet(13, 4);
  fleet.cloud.faults.no_capacity = 1;
  const auto job = fleet.slurm.submit(1, seconds(10), fleet.now);
  fleet.run(seconds(20));
  fleet.slurm.cancel(job);
  fleet.run(seconds(60));
  ASSERT_EQ(fleet.leftovers(), "");
  ASSERT_TRUE(fleet.book.leases.contains("sim/1/0/burst-0/1"));
  fleet.cloud.arrive_later("sim/1/0/burst-0/1", fleet.now);
  fleet.run(seconds(120));
  EXPECT_EQ(fleet.cloud.machines().size(), 1U);
  EXPECT_EQ(fleet.leftovers(), "");
}

/// What happens to the burst while the daemon dies and comes back.
struct Course {
  const char* name;
  std::function<void(Fleet&, std::uint32_t job, int second)> happens;
};

class InTurn : public ::testing::TestWithParam<Course> {};

/// One life with a crash before the n-th action, and the next job. False where n was never reached.
bool live_with_a_crash(const Course& course, std::uint64_t seed, int n) {
  Fleet fleet(seed, 2);
  fleet.crash_at = n;
  const auto job = fleet.slurm.submit(2, seconds(10), fleet.now);
  for (int second = 0; second < 60; ++second) {
    course.happens(fleet, job, second);
    fleet.run(seconds(1));
  }
  const bool has_crashed = fleet.actions >= n;
  const auto next = fleet.slurm.submit(1, seconds(1), fleet.now);
  const auto is_over = [&] {
    return phase(fleet, next) == JobPhase::ended && phase(fleet, job) == JobPhase::ended &&
           fleet.leftovers().empty();
  };
  for (int i = 0; i < 60 && !is_over(); ++i) {
    fleet.run(seconds(10));
  }
  const std::string where = std::string(course.name) + " seed " + std::to_string(seed) +
                            ", crash before action " + std::to_string(n);
  EXPECT_TRUE(fleet.broken.empty()) << where << ": " << fleet.broken.front();
  EXPECT_EQ(fleet.leftovers(), "") << where;
  EXPECT_EQ(phase(fleet, job), JobPhase::ended) << where;
  EXPECT_EQ(fleet.slurm.jobs().at(next).starts, 1) << where;
  return has_crashed;
}

/// The daemon dies before its 1st, 2nd, 3rd ... action, until a whole life goes by first.
TEST_P(InTurn, ACrashIsSurvived) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    int n = 1;
    while (live_with_a_crash(GetParam(), seed, n) && !HasFailure()) {
      ++n;
    }
    EXPECT_GT(n, 20);
  }
}

INSTANTIATE_TEST_SUITE_P(Course,
                         InTurn,
                         ::testing::Values(Course{"run", [](Fleet&, std::uint32_t, int) {}},
                                           Course{"cancelled",
                                                  [](Fleet& fleet, std::uint32_t job, int second) {
                                                    if (second == 4) {
                                                      fleet.slurm.cancel(job);
                                                    }
                                                  }},
                                           Course{"taken",
                                                  [](Fleet& fleet, std::uint32_t, int second) {
                                                    if (const auto* machine =
                                                            fleet.cloud.running("burst-0");
                                                        second == 25 && machine) {
                                                      fleet.cloud.take(machine->id);
                                                    }
                                                  }},
                                           Course{"batch_host_lost",
                                                  [](Fleet& fleet, std::uint32_t job, int second) {
                                                    if (second > 10 &&
                                                        phase(fleet, job) == JobPhase::running &&
                                                        fleet.slurm.jobs().at(job).starts == 1) {
                                                      fleet.slurm.lose_batch_host(job);
                                                    }
                                                  }}),
                         [](const auto& entry) { return entry.param.name; });

struct Weather {
  const char* name;
  FakeCloud::Faults faults;
  double crash;  ///< between two actions
};

class Storm : public ::testing::TestWithParam<Weather> {};

/// 20 minutes of faults, cancellations and lost batch hosts; then fair weather until all is done.
void live_through(const Weather& weather, std::uint64_t seed) {
  Fleet fleet(seed, 4);
  fleet.cloud.faults = weather.faults;
  fleet.crash = weather.crash;
  std::set<std::uint32_t> cancelled;
  fleet.run(seconds(600), [&] {
    if (fleet.slurm.jobs().size() < 6 && fleet.chance(0.02)) {
      const int wants = std::uniform_int_distribution<>(1, 3)(fleet.random);
      (void)fleet.slurm.submit(
          wants, seconds(std::uniform_int_distribution<>(1, 90)(fleet.random)), fleet.now);
    }
    for (const auto& [id, job] : fleet.slurm.jobs()) {
      if (job.seen.phase != JobPhase::ended && fleet.chance(0.001)) {
        fleet.slurm.cancel(id);
        cancelled.insert(id);
      } else if (job.seen.phase == JobPhase::running && fleet.chance(0.001)) {
        fleet.slurm.lose_batch_host(id);
      }
    }
  });
  fleet.cloud.faults = {};
  fleet.crash = 0;
  for (int i = 0; i < 60 && !fleet.leftovers().empty(); ++i) {
    fleet.run(seconds(60));
  }
  // One more delay than the longest: a job may be waiting with nothing rented.
  for (int i = 0; i < 40; ++i) {
    bool done = true;
    for (const auto& [id, job] : fleet.slurm.jobs()) {
      done = done && job.seen.phase == JobPhase::ended;
    }
    if (done && fleet.leftovers().empty()) {
      break;
    }
    fleet.run(seconds(60));
  }
  ASSERT_TRUE(fleet.broken.empty())
      << weather.name << " seed " << seed << ": " << fleet.broken.front();
  ASSERT_EQ(fleet.leftovers(), "") << weather.name << " seed " << seed;
  for (const auto& [id, job] : fleet.slurm.jobs()) {
    ASSERT_EQ(job.seen.phase, JobPhase::ended)
        << weather.name << " seed " << seed << " job " << id << ": " << job.seen.admin_comment;
  }
}

TEST_P(Storm, IsSurvived) {
  const char* many = std::getenv("ACB_FLEET_SEEDS");
  const std::uint64_t seeds = many == nullptr ? 10 : std::strtoull(many, nullptr, 10);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    live_through(GetParam(), seed);
    if (HasFatalFailure()) {
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Weather,
    Storm,
    ::testing::Values(Weather{"calm", {}, 0},
                      Weather{"crashes", {}, 0.02},
                      Weather{"throttled", {.throttled = 0.5}, 0.005},
                      Weather{"lost_requests", {.lost_request = 0.4}, 0.005},
                      Weather{"lost_creates", {.lost_create = 0.8}, 0.005},
                      Weather{"lost_replies", {.lost_reply = 0.5}, 0.005},
                      Weather{"late_requests", {.late = 0.5}, 0.005},
                      Weather{"no_capacity", {.no_capacity = 0.5}, 0.005},
                      Weather{"made_though_full", {.made_though_full = 0.5}, 0.005},
                      Weather{"bad_boots", {.never_boots = 0.3, .taken_per_minute = 0.5}, 0.005},
                      Weather{"forgotten_releases", {.forgets_release = 0.7}, 0.005},
                      Weather{"everything",
                              {.throttled = 0.1,
                               .lost_request = 0.1,
                               .lost_reply = 0.1,
                               .late = 0.1,
                               .no_capacity = 0.1,
                               .made_though_full = 0.05,
                               .refused = 0.02,
                               .never_boots = 0.1,
                               .taken_per_minute = 0.2},
                              0.01}),
    [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace acb::cloud

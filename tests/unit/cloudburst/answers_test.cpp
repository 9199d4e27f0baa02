// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/answers.h"

#include <gtest/gtest.h>

#include <functional>

namespace acb::cloud {
namespace {

using std::chrono::seconds;

const WallTime kNow = parse_time("test", "2026-11-30T21:00:00Z").value();
const BurstId kFirst{7, 0, kNow};
const Asker kRoot{0, true};
const Asker kOwner{5001, false};
const Asker kOther{5002, false};

std::string name_of_user(uid_t uid) {
  return "u" + std::to_string(uid);
}

Burst burst_of(const BurstId& id, BurstState state) {
  Burst burst;
  burst.id = id;
  burst.uid = 5001;
  burst.state = state;
  burst.nodes = 1;
  burst.opened = kNow;
  return burst;
}

Lease lease_of(const BurstId& id, LeaseState state) {
  Lease lease;
  lease.key = "demo/7/" + std::to_string(id.restart) + "/burst-0/1";
  lease.made_for = id;
  lease.owner = id;
  lease.node = "burst-0";
  lease.state = state;
  lease.instance_id = "i-1";
  lease.address = "10.2.1.1";
  lease.reserved = Money::from_micros(9'000'000);
  lease.cost = Money::from_micros(240'000);
  lease.currency = "USD";
  lease.created = kNow;
  return lease;
}

SlurmNode node_with(const std::string& name, const std::vector<bool SlurmNode::*>& flags) {
  SlurmNode node;
  node.name = name;
  for (bool SlurmNode::*flag : flags) {
    node.*flag = true;
  }
  return node;
}

Snapshot snapshot_of(const std::vector<Burst>& bursts, const std::vector<Lease>& leases) {
  Changes changes;
  changes.bursts = bursts;
  changes.leases = leases;
  Snapshot snapshot;
  snapshot.book.apply(changes);
  return snapshot;
}

Json status_of(const Snapshot& snapshot,
               std::optional<std::uint32_t> job,
               const Asker& asker = kRoot) {
  return status_answer(snapshot, job, asker, name_of_user).value()["bursts"];
}

TEST(StatusAnswer, NamesWhatABurstIsDoing) {
  struct Case {
    const char* state;
    BurstState burst;
    std::optional<LeaseState> lease;
    bool configuring;
  };
  for (const Case& c : {Case{"waiting", BurstState::open, std::nullopt, false},
                        Case{"waiting", BurstState::failed, LeaseState::releasing, true},
                        Case{"renting", BurstState::open, LeaseState::wanted, true},
                        Case{"renting", BurstState::open, LeaseState::creating, true},
                        Case{"booting", BurstState::open, LeaseState::booting, true},
                        Case{"booting", BurstState::open, LeaseState::up, true},
                        Case{"running", BurstState::started, LeaseState::up, true},
                        Case{"releasing", BurstState::ended, LeaseState::releasing, true},
                        Case{"over", BurstState::ended, LeaseState::gone, true}}) {
    Burst burst = burst_of(kFirst, c.burst);
    if (c.configuring) {
      burst.configuring = kNow;
    }
    const std::vector<Lease> leases =
        c.lease ? std::vector{lease_of(kFirst, *c.lease)} : std::vector<Lease>{};
    const Json answer = status_of(snapshot_of({burst}, leases), 7);
    EXPECT_EQ(answer[0]["state"], c.state) << name_of(c.burst);
  }
}

TEST(StatusAnswer, TellsWhatSlurmSaysOfAJobThatWaits) {
  Snapshot snapshot = snapshot_of({burst_of(kFirst, BurstState::open)}, {});
  EXPECT_TRUE(status_of(snapshot, 7)[0]["slurm_reason"].is_null());
  SlurmJob other;
  other.id = 8;
  other.waits = "Priority";
  SlurmJob job;
  job.id = 7;
  job.waits = "PartitionTimeLimit";
  snapshot.slurm = SlurmPicture{.jobs = {other, job, other}, .nodes = {}, .batch_hosts = {}};
  EXPECT_EQ(status_of(snapshot, 7)[0]["slurm_reason"], "PartitionTimeLimit");
}

TEST(StatusAnswer, ShowsABurstToItsUserAndToRootAlone) {
  const Snapshot snapshot =
      snapshot_of({burst_of(kFirst, BurstState::started)}, {lease_of(kFirst, LeaseState::up)});
  struct Case {
    Asker asker;
    std::optional<std::uint32_t> job;
    std::optional<std::size_t> bursts;  ///< nullopt: not found
  };
  for (const Case& c : {Case{kRoot, 7, 1},
                        Case{kOwner, 7, 1},
                        Case{kOwner, std::nullopt, 1},
                        Case{kOther, 7, std::nullopt},
                        Case{kRoot, 8, std::nullopt},
                        Case{kOther, std::nullopt, 0}}) {
    const auto answer = status_answer(snapshot, c.job, c.asker, name_of_user);
    ASSERT_EQ(answer.has_value(), c.bursts.has_value());
    if (answer) {
      EXPECT_EQ((*answer)["bursts"].size(), *c.bursts);
    } else {
      EXPECT_EQ(answer.error().code, ErrorCode::not_found);
    }
  }
}

TEST(StatusAnswer, IsOfAJobsNewestStartAndPassesOverWhatHasEnded) {
  const BurstId second{7, 1, kNow + seconds(60)};
  Burst failed = burst_of(kFirst, BurstState::failed);
  failed.retry_at = kNow + seconds(90);
  failed.reason = "no capacity";
  Burst waiting = burst_of(second, BurstState::open);
  waiting.told = "no capacity; next try at 21:01:30";
  const Json answer = status_of(snapshot_of({failed, waiting}, {}), 7);
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0]["restart"], 1);
  EXPECT_EQ(answer[0]["next_try"], "2026-11-30T21:01:30.000Z") << "of the start that failed";
  EXPECT_EQ(answer[0]["reason"]["text"], "no capacity; next try at 21:01:30");

  const Snapshot ended = snapshot_of({burst_of(kFirst, BurstState::ended)}, {});
  EXPECT_TRUE(status_of(ended, std::nullopt).empty());
  EXPECT_EQ(status_of(ended, 7).size(), 1U) << "asked for by name";
}

TEST(StatusAnswer, NodesHaveRegisteredOnceTheLastHas) {
  Burst burst = burst_of(kFirst, BurstState::started);
  burst.nodes = 2;
  Lease one = lease_of(kFirst, LeaseState::up);
  one.up = kNow + seconds(3);
  EXPECT_EQ(status_of(snapshot_of({burst}, {one}), 7)[0]["registered_at"], Json());
  Lease other = one;
  other.key = "demo/7/0/burst-1/1";
  other.node = "burst-1";
  other.up = kNow + seconds(5);
  const Json answer = status_of(snapshot_of({burst}, {one, other}), 7)[0];
  EXPECT_EQ(answer["registered_at"], "2026-11-30T21:00:05.000Z");
  EXPECT_EQ(answer["cost"], "0.48");
  EXPECT_EQ(answer["user"], "u5001");
}

TEST(StatusAnswer, AMachineThatWasTakenOverIsPaidByItsFirstJob) {
  const BurstId next{8, 0, kNow};
  Lease lease = lease_of(kFirst, LeaseState::up);
  lease.owner = next;
  const Snapshot snapshot = snapshot_of(
      {burst_of(kFirst, BurstState::ended), burst_of(next, BurstState::started)}, {lease});
  EXPECT_EQ(status_of(snapshot, 7)[0]["cost"], "0.24");
  EXPECT_EQ(status_of(snapshot, 8)[0]["cost"], "0.00");
  EXPECT_EQ(status_of(snapshot, 8)[0]["nodes"].size(), 1U);
}

TEST(LeasesAnswer, ShowsLeasesToTheirUserAndHoldsMoneyForLiveOnes) {
  struct Case {
    Asker asker;
    LeaseState state;
    std::size_t leases;
    const char* reserved;
  };
  for (const Case& c : {Case{kRoot, LeaseState::up, 1, "9.00"},
                        Case{kOwner, LeaseState::gone, 1, "0.00"},
                        Case{kOther, LeaseState::up, 0, ""}}) {
    const Snapshot snapshot =
        snapshot_of({burst_of(kFirst, BurstState::started)}, {lease_of(kFirst, c.state)});
    const Json leases = leases_answer(snapshot, c.asker, name_of_user)["leases"];
    ASSERT_EQ(leases.size(), c.leases) << name_of(c.state);
    if (c.leases > 0) {
      EXPECT_EQ(leases[0]["reserved"], c.reserved);
      EXPECT_EQ(leases[0]["cost"], "0.24");
      EXPECT_EQ(leases[0]["from"], Json());
    }
  }
  // A lease whose burst is forgotten is nobody's.
  const Snapshot orphan = snapshot_of({}, {lease_of(kFirst, LeaseState::up)});
  EXPECT_TRUE(leases_answer(orphan, kOwner, name_of_user)["leases"].empty());
  EXPECT_EQ(leases_answer(orphan, kRoot, name_of_user)["leases"].size(), 1U);
}

TEST(NodesAnswer, TellsOthersThatANodeIsRentedAndNotForWhom) {
  Snapshot snapshot =
      snapshot_of({burst_of(kFirst, BurstState::started)}, {lease_of(kFirst, LeaseState::up)});
  EXPECT_TRUE(nodes_answer(snapshot, kRoot)["nodes"].empty()) << "Slurm was not seen yet";
  snapshot.slurm.emplace();
  snapshot.slurm->nodes = {node_with("burst-0", {&SlurmNode::allocated}),
                           node_with("burst-1", {&SlurmNode::powered_down}),
                           node_with("burst-2", {&SlurmNode::down, &SlurmNode::powering_down}),
                           node_with("burst-3", {&SlurmNode::powering_up})};
  const Json seen = nodes_answer(snapshot, kOwner)["nodes"];
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0]["instance"], "i-1");
  EXPECT_EQ(seen[0]["job"], 7);
  const std::vector<std::string> in_slurm{"alloc", "idle~", "down%", "idle#"};
  for (std::size_t i = 0; i < in_slurm.size(); ++i) {
    EXPECT_EQ(seen[i]["slurm"], in_slurm[i]);
    EXPECT_EQ(seen[i]["state"], i == 0 ? "up" : "off");
  }
  const Json others = nodes_answer(snapshot, kOther)["nodes"][0];
  EXPECT_EQ(others["state"], "up");
  for (const char* key : {"job", "restart", "instance", "address", "since"}) {
    EXPECT_EQ(others[key], Json()) << key;
  }
}

TEST(NodesAnswer, OfTwoLeasesOfANodeTheOneThatStaysCounts) {
  const Lease old = lease_of(kFirst, LeaseState::releasing);
  Lease fresh = lease_of({8, 0, kNow}, LeaseState::booting);
  fresh.instance_id = "i-2";
  for (const char* fresh_key : {"demo/0/0/burst-0/1", "demo/8/0/burst-0/1"}) {
    fresh.key = fresh_key;
    Snapshot snapshot = snapshot_of({}, {old, fresh});
    snapshot.slurm.emplace();
    snapshot.slurm->nodes = {node_with("burst-0", {})};
    EXPECT_EQ(nodes_answer(snapshot, kRoot)["nodes"][0]["instance"], "i-2") << fresh_key;
  }
}

TEST(PrologAnswer, LetsGoOnceTheJobsNodesAreUp) {
  SlurmJob job;
  job.id = 7;
  job.restart = 1;
  job.phase = JobPhase::configuring;
  job.nodes = {"own-0", "burst-0"};
  job.admin_comment = "autocloud:v1 burst=1 own=1";
  const SlurmNode booting = node_with("burst-0", {&SlurmNode::powering_up});
  const SlurmNode elsewhere = node_with("burst-1", {&SlurmNode::powering_up});
  struct Case {
    const char* name;
    std::function<void(SlurmJob&, SlurmNode&)> change;
    std::uint32_t asks;
    std::int64_t restart;
    seconds seen_after;
    bool go;
    std::int64_t answered;
  };
  const auto nothing = [](SlurmJob&, SlurmNode&) {};
  const auto up = [](SlurmJob&, SlurmNode& node) { node.powering_up = false; };
  for (const Case& c : std::vector<Case>{
           {"its node boots", nothing, 7, -1, seconds(1), false, 1},
           {"its node is up", up, 7, -1, seconds(1), true, 1},
           {"its node is up, asked by its start", up, 7, 1, seconds(1), true, 1},
           {"Slurm was seen too long ago", up, 7, 1, seconds(0), false, 1},
           {"another start", nothing, 7, 0, seconds(1), true, 0},
           {"unknown", nothing, 8, -1, seconds(1), true, -1},
           {"no burst",
            [](SlurmJob&j, SlurmNode&) { j.admin_comment = "mine"; },
            7,
            -1,
            seconds(1),
            true,
            -1},
           {"its node goes down",
            [](SlurmJob&, SlurmNode&n) {
              n.powering_up = false;
              n.powering_down = true;
            },
            7,
            -1,
            seconds(1),
            false,
            1},
           {"it runs already",
            [](SlurmJob&j, SlurmNode&) { j.phase = JobPhase::running; },
            7,
            -1,
            seconds(1),
            true,
            1},
       }) {
    Lease serving;
    serving.node = booting.name;
    serving.state = LeaseState::up;
    serving.owner = {job.id, job.restart, job.submit};
    SlurmPicture slurm;
    slurm.jobs = {job};
    slurm.nodes = {booting, elsewhere};
    slurm.at = kNow + c.seen_after;
    c.change(slurm.jobs[0], slurm.nodes[0]);
    Snapshot snapshot;
    snapshot.book.leases["k"] = serving;
    snapshot.slurm = slurm;
    EXPECT_EQ(prolog_answer(snapshot, c.asks, c.restart, kNow),
              (Json{{"go", c.go}, {"restart", c.answered}}))
        << c.name;
  }
  EXPECT_EQ(prolog_answer(Snapshot{}, 7, 1, kNow), (Json{{"go", false}, {"restart", 1}}));
}

TEST(PrologAnswer, ANodeThatIsOnIsWaitedForUntilItsMachineIsTheJobs) {
  SlurmJob job;
  job.id = 7;
  job.phase = JobPhase::configuring;
  job.admin_comment = "autocloud:v1 burst=1 own=1";
  job.nodes = {"own-0", "burst-0"};
  Snapshot snapshot;
  snapshot.slurm.emplace();
  snapshot.slurm->at = kNow + seconds(1);
  snapshot.slurm->jobs = {job};
  snapshot.slurm->nodes = {node_with("burst-0", {})};
  const auto goes = [&] { return prolog_answer(snapshot, 7, 0, kNow)["go"].get<bool>(); };
  EXPECT_FALSE(goes());  // nothing is rented under its name
  Lease& lease = snapshot.book.leases["k"];
  lease.node = "burst-0";
  lease.state = LeaseState::up;
  lease.owner = {6, 0, {}};
  EXPECT_FALSE(goes());  // an earlier job's
  lease.owner = {7, 0, {}};
  EXPECT_TRUE(goes());
  lease.state = LeaseState::releasing;
  EXPECT_FALSE(goes());
}

}  // namespace
}  // namespace acb::cloud

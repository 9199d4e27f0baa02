// SPDX-License-Identifier: Apache-2.0
// Single decisions, from pictures made by hand: what the fleets of fleet_test.cpp do not come to.
#include "cloudburst/plan/plan.h"

#include "cloudburst/plan/outcomes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace acb::cloud {
namespace {

using std::chrono::seconds;

/// Two cloud nodes that are on, and whatever jobs and leases a test puts there.
struct Scene {
  WallTime now{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};
  Policy policy;
  Book book;
  SlurmPicture slurm;
  CloudPicture cloud;
  std::set<std::string> busy;
  std::map<std::string, WallTime> unowned;

  Scene() {
    policy.cluster = "scene";
    policy.default_gpu = "a100-80gb";
    slurm.at = now;
    for (const char* name : {"burst-0", "burst-1"}) {
      SlurmNode node;
      node.name = name;
      node.allocated = true;
      slurm.nodes.push_back(node);
    }
    cloud.offers_at = cloud.offers_asked = cloud.list_asked = now;
  }

  SlurmJob& add_job(std::uint32_t id, JobPhase phase, std::vector<std::string> nodes) {
    SlurmJob job;
    job.id = id;
    job.uid = 1000 + id;
    job.phase = phase;
    job.admin_comment = "autocloud:v1 burst=" + std::to_string(nodes.size()) + " own=1";
    nodes.emplace_back("own-0");
    job.nodes = std::move(nodes);
    job.submit = job.begin.emplace(now - seconds(100));
    job.time_limit = std::chrono::hours(1);
    slurm.jobs.push_back(job);
    return slurm.jobs.back();
  }

  Lease& add_lease(const std::string& node, const SlurmJob& job) {
    Lease lease;
    lease.made_for = {job.id, job.restart, job.submit};
    lease.owner = lease.made_for;
    lease.node = node;
    lease.attempt = 1;
    lease.key = "scene/" + std::to_string(job.id) + "/0/" + node + "/1";
    lease.state = LeaseState::up;
    lease.gpu_type = "a100-80gb";
    lease.market = Market::spot;
    lease.allocation_id = "a-" + node;
    lease.created = now - seconds(60);
    lease.checked = lease.next_try = now;
    lease.deadline = now + seconds(200);
    return book.leases[lease.key] = lease;
  }

  Plan decide() { return plan({&book, &slurm, &cloud, &busy, &unowned, now}, policy); }
};

const Lease* changed(const Plan& plan, const std::string& key) {
  const auto found = std::find_if(plan.changes.leases.begin(),
                                  plan.changes.leases.end(),
                                  [&](const Lease& lease) { return lease.key == key; });
  return found == plan.changes.leases.end() ? nullptr : &*found;
}

bool calls(const Plan& plan, CallKind kind) {
  return std::any_of(
      plan.calls.begin(), plan.calls.end(), [&](const Call& call) { return call.kind == kind; });
}

TEST(Plan, AMachineIsNotTakenFromUnderAJobByAnotherKindOnItsNode) {
  Scene scene;
  const SlurmJob first = scene.add_job(1, JobPhase::running, {"burst-0"});
  scene.add_job(2, JobPhase::running, {"burst-0"}).admin_comment += " market=on-demand";
  const std::string key = scene.add_lease("burst-0", first).key;
  EXPECT_EQ(changed(scene.decide(), key), nullptr);
  // Nor where the order of the jobs is another.
  std::swap(scene.slurm.jobs[0], scene.slurm.jobs[1]);
  EXPECT_EQ(changed(scene.decide(), key), nullptr);
}

TEST(Plan, ABurstThatIsGivenUpLeavesTheMachinesOfOthersOnItsNodes) {
  Scene scene;
  // The second burst's owns the lease that both use, and its other node is on without a lease.
  const SlurmJob first = scene.add_job(1, JobPhase::running, {"burst-0"});
  const SlurmJob second = scene.add_job(2, JobPhase::configuring, {"burst-0", "burst-1"});
  const std::string key = scene.add_lease("burst-0", second).key;
  const Plan plan = scene.decide();
  ASSERT_TRUE(
      std::any_of(plan.changes.bursts.begin(), plan.changes.bursts.end(), [](const auto& b) {
        return b.id.job == 2 && b.state == BurstState::failed;
      }));
  EXPECT_EQ(changed(plan, key), nullptr);
  EXPECT_FALSE(calls(plan, CallKind::release));
  for (const Call& call : plan.calls) {
    EXPECT_FALSE(call.kind == CallKind::power_down_force &&
                 std::count(call.nodes.begin(), call.nodes.end(), "burst-0"));
  }
  // Once it has left, the machine serves the other job.
  scene.book.apply(plan.changes);
  scene.slurm.jobs.pop_back();
  const Plan next = scene.decide();
  ASSERT_NE(changed(next, key), nullptr);
  EXPECT_EQ(changed(next, key)->owner.job, first.id);
  EXPECT_EQ(changed(next, key)->state, LeaseState::up);
}

TEST(Plan, AMachineOfAnEarlierJobServesOnlyABurstThatWantsItsKind) {
  for (const bool same : {true, false}) {
    Scene scene;
    SlurmJob gone = scene.add_job(1, JobPhase::ended, {"burst-0"});
    const std::string key = scene.add_lease("burst-0", gone).key;
    scene.slurm.jobs.clear();
    SlurmJob& next = scene.add_job(2, JobPhase::configuring, {"burst-0"});
    next.admin_comment += same ? " market=spot" : " market=on-demand";
    const Plan plan = scene.decide();
    ASSERT_NE(changed(plan, key), nullptr);
    EXPECT_EQ(changed(plan, key)->state, same ? LeaseState::up : LeaseState::releasing);
    EXPECT_EQ(changed(plan, key)->owner.job, same ? 2U : 1U);
    EXPECT_EQ(calls(plan, CallKind::power_down_force), !same);
    const auto& bursts = plan.changes.bursts;
    ASSERT_EQ(bursts.size(), 1U);
    EXPECT_EQ(bursts.front().state, same ? BurstState::open : BurstState::failed);
    if (!same) {
      EXPECT_EQ(bursts.front().reason,
                "burst-0: is still on, as a machine of an earlier job (a100-80gb, spot), and is "
                "given back first");
    }
  }
}

TEST(Plan, ABillOfAMachineThatWasThoughtNeverMadeIsBooked) {
  Scene scene;
  Lease& lease = scene.add_lease("burst-0", scene.add_job(1, JobPhase::ended, {"burst-0"}));
  lease.state = LeaseState::gone;
  lease.closed = scene.now - seconds(30);
  lease.allocation_id.clear();
  Allocation over;
  over.allocation_id = "a-7";
  over.status = AllocationStatus::released;
  over.tags = {{"job", "1"}, {"restart", "0"}, {"node", "burst-0"}, {"attempt", "1"}};
  Instance instance;
  instance.instance_id = "i-7";
  instance.status = InstanceStatus::released;
  instance.billed_s = 60;
  instance.cost = Money::from_micros(50'000);
  over.instances.push_back(instance);
  scene.cloud.listed = {over};
  scene.cloud.listed_at = scene.now;
  EXPECT_EQ(changed(scene.decide(), lease.key), nullptr);  // planned with already
  scene.cloud.list_is_new = true;
  const Plan plan = scene.decide();
  const Lease* booked = changed(plan, lease.key);
  ASSERT_NE(booked, nullptr);
  EXPECT_EQ(booked->state, LeaseState::gone);
  EXPECT_EQ(booked->instance_id, "i-7");
  EXPECT_EQ(booked->billed_s, 60);
  EXPECT_EQ(booked->cost, instance.cost);
  scene.book.apply(plan.changes);
  EXPECT_EQ(changed(scene.decide(), lease.key), nullptr);
}

TEST(Plan, ABillThatRunsOnIsTakenInWithoutAWordToTheLedger) {
  Scene scene;
  const Lease lease = scene.add_lease("burst-0", scene.add_job(1, JobPhase::running, {"burst-0"}));
  scene.book.apply(scene.decide().changes);
  ASSERT_TRUE(scene.decide().changes.empty());
  scene.now = scene.slurm.at = scene.now + seconds(2);
  Allocation going;
  going.allocation_id = lease.allocation_id;
  going.status = AllocationStatus::running;
  going.tags = {{"job", "1"}, {"restart", "0"}, {"node", "burst-0"}, {"attempt", "1"}};
  going.instances.emplace_back().status = InstanceStatus::running;
  scene.cloud.list_is_new = true;
  scene.cloud.listed = {going};
  scene.cloud.listed_at = scene.now;
  scene.book.apply(scene.decide().changes);  // what the list tells of it for the first time
  scene.now = scene.slurm.at = scene.now + seconds(2);
  going.instances.front().billed_s = 62;
  going.instances.front().cost = Money::from_micros(50'000);
  scene.cloud.listed = {going};
  scene.cloud.listed_at = scene.now;
  const Plan plan = scene.decide();
  EXPECT_TRUE(plan.changes.empty());
  EXPECT_FALSE(plan.moving && plan.calls.empty());
  scene.book.apply(plan.changes);
  EXPECT_EQ(scene.book.leases.at(lease.key).billed_s, 62);
  EXPECT_EQ(scene.book.leases.at(lease.key).checked, scene.now);
  going.instances.front().status = InstanceStatus::lost;
  scene.cloud.listed = {going};
  scene.now += seconds(1);
  scene.cloud.listed_at = scene.now;
  const Plan lost = scene.decide();
  ASSERT_NE(changed(lost, lease.key), nullptr);
  EXPECT_EQ(changed(lost, lease.key)->billed_s, 62);
}

TEST(ClosedByHand, AreOnlyLeasesWhoseMachineTheCloudDoesNotKnow) {
  Scene scene;
  Lease& lease = scene.add_lease("burst-0", scene.add_job(1, JobPhase::ended, {"burst-0"}));
  for (const LeaseState state : {LeaseState::up, LeaseState::releasing}) {
    for (const ErrorClass cls : {ErrorClass::auth, ErrorClass::gone}) {
      lease.state = state;
      lease.error_class = cls;
      const auto closed = closed_by_hand(scene.book, lease.key, scene.now);
      EXPECT_EQ(closed.has_value(), state == LeaseState::releasing && cls == ErrorClass::gone);
      if (closed) {
        EXPECT_FALSE(closed->is_live());
        EXPECT_EQ(closed->closed, scene.now);
      }
    }
  }
  EXPECT_EQ(closed_by_hand(scene.book, "scene/9", scene.now).error().code, ErrorCode::not_found);
}

TEST(Plan, AnAddressIsSetBeforeTheNodeRegistersAndNeverAfter) {
  Scene scene;
  Lease& lease = scene.add_lease("burst-0", scene.add_job(1, JobPhase::configuring, {"burst-0"}));
  lease.state = LeaseState::booting;
  lease.address = "10.99.0.7";
  scene.slurm.nodes[0].address = "burst-0";
  scene.slurm.nodes[0].powering_up = true;
  EXPECT_TRUE(calls(scene.decide(), CallKind::set_address));
  scene.slurm.nodes[0].powering_up = false;
  scene.slurm.nodes[0].address = "192.168.7.7";  // inside the site's tunnel
  EXPECT_FALSE(calls(scene.decide(), CallKind::set_address));
}

TEST(Plan, TheHoldOfARequeueIsLiftedButNoStartTimeThatSomebodyWants) {
  Scene scene;
  SlurmJob& job = scene.add_job(1, JobPhase::pending, {});
  job.nodes.clear();
  job.admin_comment = "autocloud:v1 burst=1 own=1";
  job.restart = 1;
  job.submit = scene.now - seconds(5);
  job.begin = job.submit + seconds(121);
  EXPECT_TRUE(calls(scene.decide(), CallKind::set_start));
  job.begin = scene.now + std::chrono::hours(24);
  EXPECT_FALSE(calls(scene.decide(), CallKind::set_start));
}

TEST(Plan, AJobOnTheNodeOfAMachineThatCannotBeGivenBackIsToldWhy) {
  for (const int tries : {0, 2}) {
    Scene scene;
    Lease& lease = scene.add_lease("burst-0", scene.add_job(1, JobPhase::ended, {"burst-0"}));
    lease.state = LeaseState::releasing;
    lease.tries = tries;
    lease.error_class = ErrorClass::ambiguous;
    lease.error = "ambiguous: internal (request req-1)";
    scene.slurm.jobs.clear();
    scene.add_job(2, JobPhase::configuring, {"burst-0"});
    scene.slurm.nodes[0].powering_up = true;
    const Plan plan = scene.decide();
    ASSERT_EQ(plan.changes.bursts.size(), 1U);
    EXPECT_EQ(plan.changes.bursts.front().told,
              tries == 0 ? ""
                         : "burst-0: its last machine is not given back yet: ambiguous: internal "
                           "(request req-1)");
  }
}

TEST(Plan, NothingIsRentedFromAnOldPictureOfSlurm) {
  Scene scene;
  Lease& lease = scene.add_lease("burst-0", scene.add_job(1, JobPhase::configuring, {"burst-0"}));
  lease.state = LeaseState::wanted;
  lease.allocation_id.clear();
  lease.request = "body";
  scene.slurm.nodes[0].powering_up = true;
  EXPECT_TRUE(calls(scene.decide(), CallKind::create));
  scene.now += seconds(31);
  EXPECT_FALSE(calls(scene.decide(), CallKind::create));
}

}  // namespace
}  // namespace acb::cloud

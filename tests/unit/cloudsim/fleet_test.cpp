// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/fleet.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr WallTime kStart{std::chrono::hours(1000)};

class FleetTest : public testing::Test {
 protected:
  FleetTest() {
    OfferSpec offer;
    offer.offer_id = "spot";
    offer.gpu_type = "v100";
    offer.market = Market::spot;
    offer.capacity = 3;
    offer.minimum_min = 0;
    offer.prices = {{milliseconds(0), {3'600'000}}};
    scenario_.offers.push_back(offer);
    scenario_.boot_s.low = 2;
    scenario_.release_s.low = 1;
  }

  const Allocation* rent(std::int64_t gpus, const std::string& key = {}) {
    AllocateRequest request;
    request.wish.gpu_type = "v100";
    request.wish.market = Market::spot;
    request.wish.gpus = gpus;
    request.tags = {{"job", key}};
    const auto made = fleet_.allocate(request, key, faults_, now_);
    return made ? *made : nullptr;
  }
  void wait(milliseconds time) {
    now_ += time;
    fleet_.advance(now_);
  }
  // Carries out the commands as a machine that boots and dies at once.
  std::vector<std::string> obey() {
    std::vector<std::string> done;
    for (const FleetCommand& command : fleet_.take_commands()) {
      if (command.kind == FleetCommand::Kind::start) {
        done.push_back("start " + command.instance_id);
        fleet_.booted(command.instance_id, "10.0.0.1", now_);
      } else {
        done.push_back("destroy " + command.instance_id);
        fleet_.destroyed(command.instance_id, now_);
      }
    }
    return done;
  }

  Scenario scenario_;
  WallTime now_ = kStart;
  Fleet fleet_{scenario_, kStart};
  FaultPlan faults_{1};
};

TEST_F(FleetTest, AnInstanceIsBilledFromAcceptedUntilReleased) {
  const Allocation* rented = rent(1);
  ASSERT_NE(rented, nullptr);
  const Instance& instance = rented->instances[0];
  wait(milliseconds(1999));
  EXPECT_TRUE(obey().empty());
  wait(milliseconds(1));
  EXPECT_EQ(obey(), std::vector{"start " + instance.instance_id});
  EXPECT_EQ(rented->status(), AllocationStatus::running);
  wait(seconds(8));
  EXPECT_EQ(*fleet_.release(rented->id, {}, now_), Released::releasing);
  EXPECT_EQ(obey(), std::vector{"destroy " + instance.instance_id});
  EXPECT_EQ(rented->status(), AllocationStatus::releasing);
  wait(seconds(1));
  EXPECT_EQ(rented->status(), AllocationStatus::released);
  wait(seconds(50));
  EXPECT_EQ(format_money(rented->cost(instance, now_)), "0.011");
  EXPECT_EQ(*fleet_.release(rented->id, {}, now_), Released::already_gone);
}

TEST_F(FleetTest, ReleaseWorksInEveryStateAndForNamedInstances) {
  const Allocation* rented = rent(2);
  const std::string first = rented->instances[0].instance_id;
  EXPECT_EQ(fleet_.release(rented->id, {first, "i-none"}, now_).error().code, "not_found");
  EXPECT_TRUE(rented->instances[0].is_live());
  EXPECT_EQ(*fleet_.release(rented->id, {first}, now_), Released::releasing);
  EXPECT_EQ(*fleet_.release(rented->id, {first}, now_), Released::releasing);
  wait(seconds(1));
  EXPECT_EQ(*fleet_.release(rented->id, {first}, now_), Released::already_gone);
  EXPECT_EQ(rented->status(), AllocationStatus::pending);
  EXPECT_EQ(fleet_.release("al-none", {}, now_).error().status, 404);
}

TEST_F(FleetTest, ATakeWithNoticeTellsFirstAndStopsTheBill) {
  const Allocation* rented = rent(1);
  const Instance& instance = rented->instances[0];
  wait(seconds(2));
  obey();
  ASSERT_TRUE(fleet_.take(instance.instance_id, seconds(5), now_));
  EXPECT_EQ(instance.interruption_at, now_ + seconds(5));
  wait(milliseconds(4999));
  EXPECT_EQ(instance.status, InstanceStatus::running);
  wait(milliseconds(1));
  EXPECT_EQ(instance.status, InstanceStatus::lost);
  EXPECT_EQ(obey(), std::vector{"destroy " + instance.instance_id});
  wait(seconds(60));
  EXPECT_EQ(rented->billed_s(instance, now_), 7);
  EXPECT_FALSE(fleet_.take(instance.instance_id, std::nullopt, now_));
}

TEST_F(FleetTest, AFailedBootFailsTheAllocationAndBillsNothing) {
  FaultRule rule;
  rule.kind = FaultKind::boot_fails;
  rule.skip = 1;
  faults_.add(rule, now_);
  const Allocation* rented = rent(2);
  wait(seconds(2));
  EXPECT_EQ(rented->status(), AllocationStatus::failed);
  for (const Instance& instance : rented->instances) {
    EXPECT_TRUE(instance.is_gone());
    EXPECT_EQ(rented->cost(instance, now_ + seconds(9)).micro, 0);
  }
  EXPECT_EQ(fleet_.free_instances(scenario_.offers[0]), 3);
}

TEST_F(FleetTest, ABootThatNeverComesUpIsBilledUntilItsRelease) {
  FaultRule rule;
  rule.kind = FaultKind::boot_never;
  faults_.add(rule, now_);
  const Allocation* rented = rent(1);
  wait(seconds(100));
  EXPECT_TRUE(obey().empty());
  EXPECT_EQ(rented->status(), AllocationStatus::pending);
  ASSERT_TRUE(fleet_.release(rented->id, {}, now_));
  wait(seconds(1));
  EXPECT_EQ(rented->billed_s(rented->instances[0], now_), 101);
}

TEST_F(FleetTest, PoweringOffIsAReleaseAndAnErrorWhileBootingAFailure) {
  const Allocation* off = rent(1);
  const Allocation* broken = rent(1);
  wait(seconds(2));
  fleet_.exited(broken->instances[0].instance_id, 3, now_);
  EXPECT_EQ(broken->status(), AllocationStatus::failed);
  obey();
  fleet_.exited(off->instances[0].instance_id, 0, now_);
  EXPECT_EQ(off->status(), AllocationStatus::releasing);
}

TEST_F(FleetTest, CapacityAndQuotaLimitWhatIsRented) {
  EXPECT_NE(rent(3), nullptr);
  EXPECT_EQ(rent(1), nullptr);
  scenario_.quota["v100"] = 3;
  AllocateRequest request;
  request.wish.gpu_type = "v100";
  EXPECT_EQ(fleet_.allocate(request, "", faults_, now_).error().code, "quota_exceeded");
}

TEST_F(FleetTest, ListsAreLateUnlessAskedByKey) {
  scenario_.list_delay_s.low = 90;
  const Allocation* rented = rent(1, "k1");
  rent(1, "k2");
  ListQuery by_key;
  by_key.idempotency_key = "k1";
  EXPECT_EQ(fleet_.list(by_key, now_), std::vector{rented});
  EXPECT_TRUE(fleet_.list({}, now_ + milliseconds(59'999)).empty());
  EXPECT_EQ(fleet_.list({}, now_ + seconds(60)).size(), 2U);
  ListQuery by_tag;
  by_tag.tags = {{"job", "k1"}};
  EXPECT_EQ(fleet_.list(by_tag, now_ + seconds(60)), std::vector{rented});
}

TEST_F(FleetTest, AJobEndsWithItsCommand) {
  JobRequest request;
  request.wish.gpu_type = "v100";
  request.wish.market = Market::spot;
  request.wish.gpus = 2;
  const auto job = fleet_.submit(request, "", faults_, now_);
  ASSERT_TRUE(job);
  EXPECT_EQ((*job)->terms.price_per_hour.micro, 7'200'000);
  wait(seconds(2));
  obey();
  wait(seconds(3));
  fleet_.exited((*job)->instances[0].instance_id, 4, now_);
  obey();
  EXPECT_EQ((*job)->job->exit_code, 4);
  EXPECT_EQ((*job)->status(), AllocationStatus::released);
  EXPECT_EQ((*job)->billed_s((*job)->instances[0], now_ + seconds(9)), 5);
  EXPECT_EQ(fleet_.release((*job)->id, {}, now_).error().code, "not_found");
}

}  // namespace
}  // namespace acb::sim

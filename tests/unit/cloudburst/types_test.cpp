// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/types.h"

#include <gtest/gtest.h>

namespace acb::cloud {
namespace {

AllocateRequest sound_request() {
  AllocateRequest request;
  request.gpu_type = "a100-80gb";
  request.gpus = 8;
  request.duration_min = 10;
  request.market = Market::spot;
  request.max_price_per_hour = Money::from_micros(2'500'000);
  request.user_data = "#!/bin/sh\necho ${INSTANCE_ID}\n";
  request.tags = {{"job", "7"}, {"cluster", "demo"}};
  return request;
}

TEST(AllocateBody, IsTheSameBytesForTheSameRequest) {
  EXPECT_EQ(allocate_body(sound_request()).value(),
            R"({"all_or_nothing":true,"count":8,"duration_min":10,"gpu_type":"a100-80gb",)"
            R"("market":"spot","max_price_per_hour":"2.50","tags":{"cluster":"demo","job":"7"},)"
            R"("user_data":"#!/bin/sh\necho ${INSTANCE_ID}\n"})");
}

TEST(AllocateBody, RefusesWhatTheApiWouldNotTake) {
  const auto code_after = [](void (*change)(AllocateRequest&)) {
    AllocateRequest request = sound_request();
    change(request);
    const auto body = allocate_body(request);
    return body ? std::string("taken") : std::string(name_of(body.error().code));
  };
  EXPECT_EQ(code_after([](AllocateRequest& r) { r.gpus = 0; }), "invalid");
  EXPECT_EQ(code_after([](AllocateRequest& r) { r.duration_min = 0; }), "invalid");
  EXPECT_EQ(code_after([](AllocateRequest& r) { r.gpu_type.clear(); }), "invalid");
  EXPECT_EQ(code_after([](AllocateRequest& r) { r.tags["a:b"] = "c"; }), "invalid");
  EXPECT_EQ(code_after([](AllocateRequest& r) { r.user_data.assign(16385, 'x'); }), "invalid");
  EXPECT_EQ(code_after([](AllocateRequest& r) { r.user_data.assign(16384, 'x'); }), "taken");
}

TEST(IdempotencyKey, NamesOneAttemptAndKeepsToTheLimit) {
  LeaseName lease{"demo", 17, 2, "burst-3", 4};
  EXPECT_EQ(idempotency_key(lease).value(), "demo/17/2/burst-3/4");
  lease.cluster.assign(128, 'c');
  EXPECT_FALSE(idempotency_key(lease));
}

TEST(LeaseTags, HoldNoColonInTheirKeys) {
  for (const auto& [key, value] : lease_tags({"demo", 17, 2, "burst-3", 4}, WallTime())) {
    EXPECT_EQ(key.find(':'), std::string::npos);
    EXPECT_FALSE(value.empty()) << key;
  }
}

TEST(AllocationFrom, TakesWhatTheApiSends) {
  const auto json = parse_json("test", R"({
    "allocation_id": "al-1", "status": "running", "gpu_type": "v100-32gb", "market": "spot",
    "zone": "eu-1", "offer_id": "of-1", "price_per_hour": "1.2345", "currency": "USD",
    "granularity_s": 60, "minimum_min": 10, "tags": {"job": "7", "odd": 3}, "error": null,
    "surprise": [1, 2],
    "instances": [
      {"instance_id": "i-1", "status": "running", "billed_from": "2026-01-31T10:00:00Z",
       "billed_until": null, "billed_s": 61, "cost": "0.0211", "address": "10.0.0.9", "gpus": 1,
       "interruption": {"action": "terminate", "at": "2026-01-31T10:02:00Z"}},
      {"instance_id": "i-2", "status": "hibernating", "cost": "0.01", "address": null,
       "interruption": null}]})");
  const auto allocation = allocation_from(*json);
  ASSERT_TRUE(allocation);
  EXPECT_EQ(allocation->status, AllocationStatus::running);
  EXPECT_EQ(allocation->market, Market::spot);
  EXPECT_EQ(format_money(allocation->price_per_hour), "1.2345");
  EXPECT_EQ(allocation->tags, (std::map<std::string, std::string>{{"job", "7"}}));
  EXPECT_FALSE(allocation->error);
  EXPECT_FALSE(allocation->is_over());
  EXPECT_EQ(format_money(allocation->cost()), "0.0311");
  ASSERT_EQ(allocation->instances.size(), 2U);
  EXPECT_EQ(allocation->instances[0].address, "10.0.0.9");
  EXPECT_EQ(allocation->instances[0].billed_s, 61);
  EXPECT_EQ(format_time(allocation->instances[0].reclaim_at.value()), "2026-01-31T10:02:00.000Z");
  EXPECT_EQ(allocation->instances[1].status, InstanceStatus::unknown);
  EXPECT_FALSE(allocation->instances[1].reclaim_at);
  EXPECT_FALSE(allocation->instances[1].billed_from);
}

TEST(AllocationFrom, TellsWhyAnAllocationFailed) {
  const auto json = parse_json(
      "test",
      R"({"allocation_id":"al-1","status":"failed","error":{"code":"insufficient_capacity","message":"none left","request_id":"r"}})");
  const auto allocation = allocation_from(*json);
  ASSERT_TRUE(allocation);
  EXPECT_TRUE(allocation->is_over());
  ASSERT_TRUE(allocation->error);
  EXPECT_EQ(allocation->error->cls, ErrorClass::no_capacity);
  EXPECT_EQ(allocation->error->request_id, "r");
}

TEST(AllocationFrom, AnythingElseIsNone) {
  for (const char* text :
       {"null", "[]", "3", "{}", R"({"allocation_id":7})", R"({"allocation_id":""})"}) {
    EXPECT_FALSE(allocation_from(*parse_json("test", text))) << text;
  }
  const auto odd = allocation_from(*parse_json(
      "test",
      R"({"allocation_id":"a","status":3,"tags":[1],"instances":{"x":1},"error":"words","price_per_hour":2})"));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->status, AllocationStatus::unknown);
  EXPECT_TRUE(odd->instances.empty());
}

TEST(OfferFrom, NeedsAnIdAndAPrice) {
  const auto offer = offer_from(*parse_json(
      "test",
      R"({"offer_id":"o","gpu_type":"g","market":"on_demand","price_per_hour":"3.10","available":null,"notice_s":120,"gpus_per_instance":8})"));
  ASSERT_TRUE(offer);
  EXPECT_EQ(format_money(offer->price_per_hour), "3.10");
  EXPECT_EQ(offer->available, std::nullopt);
  EXPECT_EQ(offer->notice_s, 120);
  EXPECT_EQ(offer->gpus_per_instance, 8);
  for (const char* text : {"[]",
                           R"({"offer_id":"o"})",
                           R"({"price_per_hour":"1"})",
                           R"({"offer_id":"o","price_per_hour":"-1"})",
                           R"({"offer_id":"o","price_per_hour":"cheap"})"}) {
    EXPECT_FALSE(offer_from(*parse_json("test", text))) << text;
  }
}

}  // namespace
}  // namespace acb::cloud

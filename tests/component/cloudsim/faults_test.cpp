// SPDX-License-Identifier: Apache-2.0
// What goes wrong on demand, as a client sees it.
#include "server.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

constexpr const char* kScenario = "[offers.v100]\ngpu_type = 'v100'\nprice = '1'\n";

class Faults : public testing::Test {
 protected:
  void add(const std::vector<std::string>& rule) {
    std::vector<std::string> arguments = {
        "fault", "add", "f", "--path", "/v1/gpu/allocate", "--count", "1"};
    arguments.insert(arguments.end(), rule.begin(), rule.end());
    (void)server_.run(arguments);
  }
  [[nodiscard]] std::size_t made() const {
    return server_.get("/v1/gpu/allocations")["allocations"].size();
  }
  Server server_{kScenario, "", ""};
};

TEST_F(Faults, ARefusalHasItsStatusCodeAndRetryAfter) {
  add({"--kind", "error", "--status", "429", "--code", "rate_limited", "--retry-after-s", "7"});
  const auto reply = server_.allocate({});
  EXPECT_EQ(reply->status, 429);
  EXPECT_EQ(reply->get_header_value("Retry-After"), "7");
  EXPECT_EQ(Json::parse(reply->body)["error"]["code"], "rate_limited");
  EXPECT_EQ(made(), 0U);
  EXPECT_EQ(server_.allocate({})->status, 201);
}

TEST_F(Faults, AClosedConnectionMayOrMayNotHaveMadeIt) {
  add({"--kind", "drop"});
  EXPECT_FALSE(server_.allocate({}, "k"));
  EXPECT_EQ(made(), 0U);
  add({"--kind", "lose_reply"});
  EXPECT_FALSE(server_.allocate({}, "k"));
  EXPECT_EQ(made(), 1U);
  EXPECT_EQ(server_.allocate({}, "k")->status, 201);
  EXPECT_EQ(made(), 1U);
  EXPECT_NE(server_.file("requests.jsonl").find("\"fault\":\"f\""), std::string::npos);
}

TEST_F(Faults, AnErrorAfterTheFactIsFoundByItsKey) {
  add({"--kind", "error_after", "--status", "500", "--code", "internal"});
  EXPECT_EQ(server_.allocate({}, "k")->status, 500);
  EXPECT_EQ(server_.get("/v1/gpu/allocations?idempotency_key=k")["allocations"].size(), 1U);
}

TEST_F(Faults, AGarbledReplyIsNoJsonAndASlowOneIsLate) {
  add({"--kind", "garble"});
  EXPECT_TRUE(Json::parse(server_.allocate({})->body, nullptr, false).is_discarded());
  add({"--kind", "slow", "--delay-s", "0.3"});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(server_.allocate({})->status, 201);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(300));
}

TEST_F(Faults, ABootCanFailOrNeverComeUp) {
  (void)server_.run({"fault", "add", "f", "--kind", "boot_fails", "--count", "1"});
  const std::string failed = Json::parse(server_.allocate({})->body)["allocation_id"];
  ASSERT_TRUE(eventually(
      [&] { return server_.get("/v1/gpu/allocations/" + failed)["status"] == "failed"; }));
  const Json shown = server_.get("/v1/gpu/allocations/" + failed);
  EXPECT_EQ(shown["error"]["code"], "boot_failed");
  EXPECT_EQ(shown["instances"][0]["cost"], "0.00");

  (void)server_.run(
      {"fault", "add", "f", "--kind", "boot_never", "--key", "never", "--count", "1"});
  const std::string other = Json::parse(server_.allocate({}, "other")->body)["allocation_id"];
  const std::string never = Json::parse(server_.allocate({}, "never")->body)["allocation_id"];
  const std::string later = Json::parse(server_.allocate({}, "later")->body)["allocation_id"];
  ASSERT_TRUE(eventually([&] {
    return server_.get("/v1/gpu/allocations/" + other)["status"] == "running" &&
           server_.get("/v1/gpu/allocations/" + later)["status"] == "running";
  }));
  const Json stuck = server_.get("/v1/gpu/allocations/" + never);
  EXPECT_EQ(stuck["status"], "pending");
  EXPECT_EQ(stuck["instances"][0]["status"], "booting");
  EXPECT_TRUE(stuck["instances"][0]["address"].is_null());
  EXPECT_GT(stuck["instances"][0]["billed_s"], 0);  // and it costs, until it is given back
  const auto client = server_.client();
  ASSERT_TRUE(client->Post("/v1/gpu/allocations/" + never + "/release"));
  EXPECT_TRUE(eventually(
      [&] { return server_.get("/v1/gpu/allocations/" + never)["status"] == "released"; }));
}

}  // namespace
}  // namespace acb::sim

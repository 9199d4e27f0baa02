// SPDX-License-Identifier: Apache-2.0
// Every call of the API over real HTTPS; instances come up by themselves.
#include "server.h"

#include <gtest/gtest.h>

#include <thread>

namespace acb::sim {
namespace {

constexpr const char* kScenario = R"(
[latency]
allocate_s = 0.2
[quota]
v100 = 6
[offers.v100]
gpu_type = "v100"
price = "3.60"
minimum_min = 0
capacity = 4
[offers.v100-spot]
gpu_type = "v100"
market = "spot"
price = ["0:1.20", "9999:2.00"]
notice_s = 30
)";

class Calls : public testing::Test {
 protected:
  static std::string code(const httplib::Result& reply) {
    const Json error = Json::parse(reply->body)["error"];
    EXPECT_FALSE(error["request_id"].get<std::string>().empty());
    return std::to_string(reply->status) + " " + error["code"].get<std::string>();
  }
  Server server_{kScenario, "", ""};
};

TEST_F(Calls, ErrorsHaveTheirShape) {
  const auto client = server_.client();
  client->set_bearer_token_auth("wrong");
  EXPECT_EQ(code(client->Get("/v1/account")), "401 unauthorized");
  client->set_bearer_token_auth(kTestKey);
  EXPECT_EQ(code(client->Get("/v1/nothing")), "404 not_found");
  EXPECT_EQ(code(client->Get("/v1/gpu/allocations/al-0")), "404 not_found");
  EXPECT_EQ(code(client->Get("/v1/gpu/allocations?limit=501")), "400 invalid_argument");
  EXPECT_EQ(code(client->Post("/v1/gpu/allocate", "{", "application/json")),
            "400 invalid_argument");
  EXPECT_EQ(code(server_.allocate({{"count", 5}})), "409 insufficient_capacity");
  EXPECT_EQ(code(server_.allocate({{"count", 7}})), "403 quota_exceeded");
  EXPECT_EQ(code(server_.allocate({{"max_price_per_hour", "3.59"}})), "409 price_exceeded");
}

TEST_F(Calls, DuplicatesInFlightWaitForTheFirstAndGetItsReply) {
  std::vector<std::string> bodies(4);
  std::vector<std::thread> callers;
  for (std::string& body : bodies) {
    callers.emplace_back([&] { body = server_.allocate({}, "key")->body; });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(bodies, std::vector(4, bodies[0]));
  const Json page = server_.get("/v1/gpu/allocations");
  ASSERT_EQ(page["allocations"].size(), 1U);
  const std::string id = page["allocations"][0]["allocation_id"];
  const auto mismatch = server_.allocate({{"count", 2}}, "key");
  EXPECT_EQ(code(mismatch), "409 idempotency_mismatch");
  EXPECT_EQ(Json::parse(mismatch->body)["error"]["allocation_id"], id);
  EXPECT_EQ(server_.client()->Post("/v1/gpu/allocations/" + id + "/release")->status, 202);
  ASSERT_TRUE(
      eventually([&] { return server_.get("/v1/gpu/allocations/" + id)["status"] == "released"; }));
  EXPECT_EQ(code(server_.allocate({}, "key")), "409 idempotency_expired");
  EXPECT_EQ(server_.client()->Post("/v1/gpu/allocations/" + id + "/release")->status, 200);
}

TEST_F(Calls, ListsGoByTagAndPage) {
  for (const char* job : {"1", "2", "2"}) {
    ASSERT_EQ(server_.allocate({{"tags", {{"job", job}, {"cluster", "c"}}}})->status, 201);
  }
  EXPECT_EQ(server_.get("/v1/gpu/allocations?tag=job:2&tag=cluster:c")["allocations"].size(), 2U);
  EXPECT_TRUE(server_.get("/v1/gpu/allocations?idempotency_key=none")["allocations"].empty());
  const Json first = server_.get("/v1/gpu/allocations?limit=2");
  ASSERT_EQ(first["allocations"].size(), 2U);
  const std::string cursor = first["next_cursor"];
  const Json second = server_.get("/v1/gpu/allocations?limit=2&cursor=" + cursor);
  ASSERT_EQ(second["allocations"].size(), 1U);
  EXPECT_TRUE(second["next_cursor"].is_null());
  const std::string id = second["allocations"][0]["allocation_id"];
  const auto changed = server_.client()->Patch(
      "/v1/gpu/allocations/" + id, R"({"tags": {"job": "9"}})", "application/json");
  EXPECT_EQ(Json::parse(changed->body)["tags"], Json({{"job", "9"}, {"cluster", "c"}}));
}

TEST_F(Calls, OffersPricesAndTheAccountTellOfTheMarket) {
  ASSERT_EQ(server_.allocate({{"count", 2}, {"duration_min", 60}})->status, 201);
  const Json offers = server_.get("/v1/gpu/offers?gpu_type=v100")["offers"];
  EXPECT_EQ(offers[0]["available"], 2);
  EXPECT_EQ(offers[1]["notice_s"], 30);
  EXPECT_TRUE(server_.get("/v1/gpu/offers?gpu_type=none")["offers"].empty());
  const Json prices = server_.get("/v1/gpu/prices?gpu_type=v100&zone=zone-a")["prices"];
  ASSERT_EQ(prices.size(), 1U);
  EXPECT_EQ(prices[0]["price_per_hour"], "1.20");
  const Json account = server_.get("/v1/account");
  EXPECT_EQ(account["quota"][0], Json({{"gpu_type", "v100"}, {"gpus", 6}, {"used", 2}}));
  EXPECT_EQ(account["spent_this_month"], "7.20");
}

TEST_F(Calls, JobsRunTheirCommand) {
  const auto client = server_.client();
  Json body = {
      {"name", "n"}, {"image", "i"}, {"command", "exit 3"}, {"gpu_type", "v100"}, {"gpu_count", 2}};
  const auto made = client->Post("/v1/jobs", body.dump(), "application/json");
  ASSERT_EQ(made->status, 201) << made->body;
  const std::string path = "/v1/jobs/" + Json::parse(made->body)["job_id"].get<std::string>();
  ASSERT_TRUE(eventually([&] { return server_.get(path)["status"] == "failed"; }));
  EXPECT_EQ(server_.get(path)["exit_code"], 3);
  body["command"] = "sleep 100";
  const auto sleeper = client->Post("/v1/jobs", body.dump(), "application/json");
  const std::string other = "/v1/jobs/" + Json::parse(sleeper->body)["job_id"].get<std::string>();
  ASSERT_TRUE(eventually([&] { return server_.get(other)["status"] == "running"; }));
  EXPECT_EQ(client->Delete(other)->status, 202);
  EXPECT_TRUE(eventually([&] { return server_.get(other)["status"] == "cancelled"; }));
  EXPECT_EQ(server_.get("/v1/jobs")["jobs"].size(), 2U);
}

TEST_F(Calls, ObjectsAreStoredWholeAndReadInParts) {
  const auto client = server_.client();
  const auto stored = client->Put("/v1/objects/a/b", "0123456789", "application/octet-stream");
  EXPECT_EQ(stored->get_header_value("ETag"), "\"781e5e245d69b566979b86e28d23f2c7\"");
  EXPECT_EQ(client
                ->Put("/v1/objects/a/c",
                      httplib::Headers{{"Content-MD5", "AAAA"}},
                      "x",
                      "application/octet-stream")
                ->status,
            400);
  EXPECT_EQ(client->Get("/v1/objects/a/b")->body, "0123456789");
  const auto part = client->Get("/v1/objects/a/b", httplib::Headers{{"Range", "bytes=2-4"}});
  EXPECT_EQ(part->status, 206);
  EXPECT_EQ(part->body, "234");
  EXPECT_EQ(client->Get("/v1/objects/a/b", httplib::Headers{{"Range", "bytes=10-"}})->status, 416);
  const Json page = server_.get("/v1/objects?prefix=a/");
  ASSERT_EQ(page["objects"].size(), 1U);
  EXPECT_EQ(page["objects"][0]["size"], 10);
  EXPECT_EQ(client->Delete("/v1/objects/a/b")->status, 204);
  EXPECT_EQ(client->Get("/v1/objects/a/b")->status, 404);
}

TEST_F(Calls, AnUploadThatBreaksOffStoresNothing) {
  const auto client = server_.client();
  const auto broken = client->Put(
      "/v1/objects/half",
      1000,
      [](std::size_t offset, std::size_t, httplib::DataSink& sink) {
        return offset == 0 && sink.write("some", 4);
      },
      "application/octet-stream");
  EXPECT_FALSE(broken);
  EXPECT_TRUE(server_.get("/v1/objects")["objects"].empty());
}

}  // namespace
}  // namespace acb::sim

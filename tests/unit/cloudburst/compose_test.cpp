// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/compose.h"

#include "base/files.h"
#include "base/json.h"
#include "cloudburst/join/digest.h"

#include <gtest/gtest.h>

#include <functional>

namespace acb::cloud {
namespace {

const WallTime kEnds = parse_time("test", "2026-11-30T22:00:00Z").value();
const JoinPlace kJoin{"https://ctl:8543", "Q0E="};

class Compose : public testing::Test {
 protected:
  void SetUp() override {
    config_.cluster = "demo";
    config_.image = "img-1";
    config_.gpus_per_node = 8;
    config_.user_data_template = template_;
    lease_.made_for = {7, 1, {}};
    lease_.node = "burst-3";
    lease_.attempt = 2;
    lease_.gpu_type = "a100-80gb";
    lease_.market = Market::spot;
    lease_.offer_id = "o-1";
    write(
        "@NODE@ @CLUSTER@ @JOIN_URL@ @JOIN_CA_BASE64@ @JOIN_SECRET@ @NODE@ ${INSTANCE_ID} @other@");
  }
  void TearDown() override { std::filesystem::remove(template_); }
  void write(const std::string& text) const { ASSERT_TRUE(write_file(template_, text)); }
  [[nodiscard]] Json composed() {
    const auto done = compose_request(lease_, config_, kJoin, kEnds);
    EXPECT_TRUE(done) << done.error().message;
    return Json::parse(lease_.request, nullptr, false);
  }

  std::filesystem::path template_ =
      std::filesystem::temp_directory_path() / ("acb-user-data-" + random_hex(8));
  Config config_;
  Lease lease_;
};

TEST_F(Compose, FillsTheUserDataInAndKeepsTheSecretsHashAlone) {
  const auto words = split(composed()["user_data"].get<std::string>(), ' ');
  ASSERT_EQ(words.size(), 8U);
  const std::string secret = words[4];
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_EQ(words,
            (std::vector<std::string>{"burst-3",
                                      "demo",
                                      "https://ctl:8543",
                                      "Q0E=",
                                      secret,
                                      "burst-3",
                                      "${INSTANCE_ID}",
                                      "@other@"}));
  EXPECT_EQ(lease_.secret_sha256, sha256_hex(secret));
  EXPECT_NE(split(composed()["user_data"].get<std::string>(), ' ')[4], secret)
      << "secret used twice";
}

TEST_F(Compose, AsksForWhatTheLeaseIsAbout) {
  struct Case {
    int minimum_min;
    const char* max_price;
    int asks_for_min;
    Json at_most;
  };
  for (const Case& c : {Case{0, "", 1, Json()}, Case{10, "2.50", 10, "2.50"}}) {
    lease_.minimum_min = c.minimum_min;
    config_.max_price_per_hour = c.max_price;
    const Json body = composed();
    EXPECT_EQ(body["duration_min"], c.asks_for_min);
    EXPECT_EQ(body.value("max_price_per_hour", Json()), c.at_most);
    EXPECT_EQ(body["gpu_type"], "a100-80gb");
    EXPECT_EQ(body["count"], 8);
    EXPECT_EQ(body["offer_id"], "o-1");
    EXPECT_EQ(body["market"], "spot");
    EXPECT_EQ(body["image"], "img-1");
    EXPECT_EQ(body["tags"],
              (Json{{"cluster", "demo"},
                    {"job", "7"},
                    {"restart", "1"},
                    {"node", "burst-3"},
                    {"attempt", "2"},
                    {"deadline", "2026-11-30T22:00:00.000Z"}}));
  }
}

TEST_F(Compose, RefusesWhatCannotBeSentAndLeavesTheLeaseAsItIs) {
  struct Case {
    const char* name;
    std::function<void()> break_it;
    std::string message;
  };
  const std::vector<Case> cases{
      {"too long for the cloud", [&] { write(std::string(16385, 'x')); }, "user data"},
      {"too long for us", [&] { write(std::string(70000, 'x')); }, template_.string()},
      {"a price that is none",
       [&] {
         write("x");
         config_.max_price_per_hour = "cheap";
       },
       "provider.max_price_per_hour"},
      {"no template", [&] { std::filesystem::remove(template_); }, template_.string()},
  };
  for (const Case& c : cases) {
    c.break_it();
    const auto done = compose_request(lease_, config_, kJoin, kEnds);
    ASSERT_FALSE(done) << c.name;
    EXPECT_NE(done.error().message.find(c.message), std::string::npos)
        << c.name << ": " << done.error().message;
    EXPECT_TRUE(lease_.request.empty()) << c.name;
    EXPECT_TRUE(lease_.secret_sha256.empty()) << c.name;
  }
}

TEST_F(Compose, ATemplateThatLetsNobodyInIsToldAtTheStart) {
  EXPECT_TRUE(check_template(config_));
  write("@NODE@ @JOIN_URL@");
  const auto closed = check_template(config_);
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("must hold @JOIN_SECRET@"), std::string::npos);
  std::filesystem::remove(template_);
  const auto absent = check_template(config_);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message.find("provider.user_data_template: "), 0U);
}

}  // namespace
}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// Instances as processes: boot, take, release, and the end of the server.
#include "base/process.h"
#include "server.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <csignal>

namespace acb::sim {
namespace {

constexpr const char* kScenario =
    "[offers.v100]\ngpu_type = 'v100'\nmarket = 'spot'\nprice = '3.60'\nminimum_min = 0\n";
// Notes its process, takes an address and lives until it is cut.
constexpr const char* kBoot =
    "cd \"$(dirname \"$CLOUDSIM_ADDRESS_FILE\")\"; echo $$ >pid; cat \"$CLOUDSIM_USER_DATA\"; "
    "echo 10.1.2.3 >a; mv a address; sleep 100 & wait";
constexpr const char* kDestroy = "touch \"$(dirname \"$CLOUDSIM_ADDRESS_FILE\")/destroyed\"";

class Life : public testing::Test {
 protected:
  void rent() {
    const auto reply = server_.allocate(
        {{"market", "spot"}, {"user_data", "I am ${INSTANCE_ID} at ${METADATA_URL}"}});
    const Json made = Json::parse(reply->body);
    id_ = made["allocation_id"];
    instance_ = made["instances"][0]["instance_id"];
    ASSERT_TRUE(eventually([&] { return status() == "running"; }));
    pid_ = std::stoi(server_.file("instances/" + instance_ + "/pid"));
  }
  [[nodiscard]] Json instance() const {
    return server_.get("/v1/gpu/allocations/" + id_)["instances"][0];
  }
  [[nodiscard]] std::string status() const { return instance()["status"]; }
  // The whole group: the shell and its sleep.
  [[nodiscard]] bool runs() const { return ::kill(-pid_, 0) == 0; }
  [[nodiscard]] bool was_cut() const {
    return std::filesystem::exists(server_.folder() / "state/instances" / instance_ / "destroyed");
  }

  Server server_{kScenario, kBoot, kDestroy};
  std::string id_;
  std::string instance_;
  pid_t pid_ = 0;
};

TEST_F(Life, AnInstanceHasItsAddressAndUserDataUntilItIsReleased) {
  rent();
  EXPECT_EQ(instance()["address"], "10.1.2.3");
  EXPECT_NE(server_.file("instances/" + instance_ + "/output.log")
                .find("I am " + instance_ + " at http://127.0.0.1:"),
            std::string::npos);
  EXPECT_EQ(server_.client()->Post("/v1/gpu/allocations/" + id_ + "/release")->status, 202);
  ASSERT_TRUE(eventually([&] { return status() == "released"; }));
  EXPECT_TRUE(was_cut());
  EXPECT_TRUE(eventually([&] { return !runs(); }));
}

TEST_F(Life, ATakeGivesNoticeWhereToldAndCutsThePower) {
  rent();
  EXPECT_EQ(server_.metadata(instance_)->status, 404);
  (void)server_.run({"take", instance_, "--notice", "0.5"});
  const auto notice = server_.metadata(instance_);
  EXPECT_EQ(notice->status, 200);
  EXPECT_EQ(Json::parse(notice->body)["action"], "terminate");
  EXPECT_EQ(Json::parse(notice->body), instance()["interruption"]);
  ASSERT_TRUE(eventually([&] { return status() == "lost"; }));
  EXPECT_TRUE(eventually([&] { return was_cut() && !runs(); }));
}

TEST_F(Life, PoweringOffReleases) {
  rent();
  ::kill(-pid_, SIGTERM);
  EXPECT_TRUE(eventually([&] { return status() == "released"; }));
}

TEST_F(Life, TheServersEndGivesEverythingBackAndLeavesTheBill) {
  rent();
  EXPECT_EQ(server_.end(SIGTERM), 0);
  // The killed orphans of the group stay visible until init has reaped them.
  EXPECT_TRUE(eventually([&] { return !runs(); }));
  EXPECT_TRUE(was_cut());
  const Json bill = Json::parse(server_.run({"bill", "--json"}));
  ASSERT_EQ(bill["instances"].size(), 1U);
  EXPECT_EQ(bill["instances"][0]["status"], "released");
  EXPECT_GE(bill["instances"][0]["billed_s"], 1);
  for (const char* name : {"requests.jsonl", "events.jsonl", "bill.jsonl"}) {
    EXPECT_FALSE(server_.file(name).empty()) << name;
    EXPECT_EQ(server_.file(name).find(kTestKey), std::string::npos) << name;
  }
}

TEST_F(Life, APortThatIsTakenIsRefused) {
  const std::string url = Json::parse(server_.file("endpoint.json"))["url"];
  const auto folder = server_.folder();
  const auto second = run_process({{ACB_CLOUDSIM,
                                    "serve",
                                    "--scenario",
                                    folder / "scenario.toml",
                                    "--listen",
                                    url.substr(url.find("//") + 2),
                                    "--cert",
                                    folder / "cert.pem",
                                    "--key",
                                    folder / "key.pem",
                                    "--state",
                                    folder / "second"}},
                                  std::chrono::seconds(5));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->exit_code, 1);
  EXPECT_NE(second->output.find("cannot listen there"), std::string::npos) << second->output;
}

TEST_F(Life, NothingOutlivesAServerThatIsKilled) {
  rent();
  EXPECT_EQ(server_.end(SIGKILL), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return !runs() && was_cut(); }));
}

}  // namespace
}  // namespace acb::sim

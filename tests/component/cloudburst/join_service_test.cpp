// SPDX-License-Identifier: Apache-2.0
// The join service and a node's side of it, over real TLS on the loopback address.
#include "base/files.h"
#include "base/text.h"
#include "cloudburst/http/http.h"
#include "cloudburst/join/digest.h"
#include "cloudburst/join/join_server.h"
#include "cloudburst/join/node_check.h"
#include "cloudburst/join/node_join.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <future>
#include <thread>
#include <vector>

namespace acb::cloud {
namespace {

class Join : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_folders(folder_));
    restart();
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void restart() {
    server_.reset();
    auto started = JoinServer::start(
        "127.0.0.1:0",
        folder_ / "join.pem",
        [this](const JoinRequest& r) { return answer(r); },
        limits_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }
  Result<JoinGrant> answer(const JoinRequest& request) {
    ++asked_;
    if (!same_text(request.secret_sha256, sha256_hex(secret_))) {
      return fail(ErrorCode::denied, "no such secret");
    }
    if (used_.exchange(true)) {
      return fail(ErrorCode::exists, "used before");
    }
    return JoinGrant{"burst-2", "demo", "ctl:6817", munge_key_};
  }
  [[nodiscard]] JoinOptions options() {
    EXPECT_TRUE(write_file(folder_ / "ca.pem", from_base64(server_->ca_base64()).value()));
    JoinOptions options;
    options.url = "https://127.0.0.1:" + std::to_string(server_->port());
    options.ca_file = folder_ / "ca.pem";
    options.instance = "i-17";
    options.out = folder_ / "joined";
    options.rented_mark = folder_ / "run" / "rented";
    options.deadline = std::chrono::seconds(1);
    return options;
  }
  [[nodiscard]] static mode_t mode_of(const std::filesystem::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("acb-join-" + random_hex(8));
  std::string secret_ = new_join_secret();
  std::string munge_key_ = std::string("\x00\x01key\xff", 6);
  JoinServer::Limits limits_;
  std::atomic<bool> used_ = false;
  std::atomic<int> asked_ = 0;
  std::unique_ptr<JoinServer> server_;
};

TEST_F(Join, GivesANodeWhatItNeedsOnce) {
  const Secret secret = Secret::copy_of("secret", secret_).value();
  const JoinOptions asked = options();
  const auto joined = join_cluster(asked, secret);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(read_file(asked.out / "munge.key").value(), munge_key_);
  EXPECT_EQ(mode_of(asked.out / "munge.key"), 0400U);
  EXPECT_EQ(mode_of(folder_ / "join.pem"), 0600U);
  const auto about = parse_json("node.json", read_file(asked.out / "node.json").value());
  EXPECT_EQ((*about)["node"], "burst-2");
  EXPECT_EQ((*about)["conf_server"], "ctl:6817");
  EXPECT_TRUE(std::filesystem::exists(asked.rented_mark));
  const auto again = join_cluster(asked, secret);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::exists);
}

TEST_F(Join, AWrongSecretGetsNothing) {
  const JoinOptions asked = options();
  const auto refused = join_cluster(asked, Secret::copy_of("secret", "guess").value());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::denied);
  EXPECT_FALSE(std::filesystem::exists(asked.out));
  EXPECT_FALSE(std::filesystem::exists(asked.rented_mark));
}

TEST_F(Join, AServerWithAnotherCertificateLearnsNoSecret) {
  JoinOptions asked = options();
  const auto other =
      JoinServer::start("127.0.0.1:0", folder_ / "other.pem", [](const JoinRequest&) {
        ADD_FAILURE() << "the secret reached the wrong server";
        return Result<JoinGrant>(JoinGrant{});
      });
  asked.url = "https://127.0.0.1:" + std::to_string((*other)->port());
  const auto refused = join_cluster(asked, Secret::copy_of("secret", secret_).value());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::denied);
}

TEST_F(Join, TheCertificateOutlivesARestart) {
  const std::string before = server_->ca_base64();
  restart();
  EXPECT_EQ(server_->ca_base64(), before);
  EXPECT_TRUE(join_cluster(options(), Secret::copy_of("secret", secret_).value()));
}

TEST_F(Join, AnAddressThatGuessesIsSlowedDown) {
  const JoinOptions asked = options();
  HttpRequest guess;
  guess.method = "POST";
  guess.url = asked.url + "/v1/join";
  guess.ca_file = asked.ca_file;
  guess.verify_name = false;
  int slowed = 0;
  for (int round = 0; round < 25; ++round) {
    guess.body = R"({"secret":"guess)" + std::to_string(round) + R"("})";
    const auto response = http_call(guess);
    ASSERT_TRUE(response) << response.error().message;
    slowed += response->status == 429 ? 1 : 0;
  }
  EXPECT_GE(slowed, 3);
  EXPECT_LE(asked_, 22);
}

/// A plain connection from another address of this host than the nodes' own.
UniqueFd connect_from(const char* source, int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, source, &address.sin_addr), 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr), 1);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST_F(Join, ManyThatSayNothingKeepNoNodeWaiting) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 400; ++i) {
    silent.push_back(connect_from("127.0.0.2", server_->port()));
  }
  const auto begun = std::chrono::steady_clock::now();
  const auto joined = join_cluster(options(), Secret::copy_of("secret", secret_).value());
  EXPECT_TRUE(joined) << joined.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(3));
}

TEST_F(Join, OneThatSaysALittleNowAndThenIsCutOff) {
  limits_.connection = std::chrono::milliseconds(500);
  restart();
  const UniqueFd fd = connect_from("127.0.0.2", server_->port());
  const std::string hello("\x16\x03\x01\x02\x00\x01", 6);  // of 512 bytes that never come
  ASSERT_EQ(::send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL), 6);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  bool is_open = true;
  while (is_open && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    char answer = 0;
    is_open = ::send(fd.get(), "x", 1, MSG_NOSIGNAL) == 1 &&
              (::recv(fd.get(), &answer, 1, MSG_DONTWAIT) > 0 || errno == EAGAIN);
  }
  EXPECT_FALSE(is_open);
}

TEST_F(Join, TheNodesCheckComparesClocksAndFindsWhatIsMissing) {
  const JoinOptions asked = options();
  CheckOptions wanted;
  wanted.url = asked.url;
  wanted.ca_file = asked.ca_file;
  wanted.gpus = 1;
  wanted.gpu_devices = (folder_ / "gpu*").string();
  wanted.memory_mib = 1;
  wanted.conf_server = "127.0.0.1:" + std::to_string(server_->port());
  Json report = check_report(check_node(wanted));
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["checks"][0]["ok"], true) << report;  // clock
  EXPECT_EQ(report["checks"][1]["ok"], false);           // gpus
  ASSERT_TRUE(write_file(folder_ / "gpu0", ""));
  report = check_report(check_node(wanted));
  EXPECT_EQ(report["ok"], true) << report;
  wanted.patience = std::chrono::seconds(0);
  wanted.conf_server = "127.0.0.1:1";
  wanted.memory_mib = 1 << 30;
  report = check_report(check_node(wanted));
  EXPECT_EQ(report["checks"][2]["ok"], false);
  EXPECT_EQ(report["checks"][3]["ok"], false);
}

TEST_F(Join, TheNodesCheckWaitsForADaemonThatIsRestarting) {
  CheckOptions wanted;
  wanted.url = options().url;
  wanted.ca_file = options().ca_file;
  const std::string place = "127.0.0.1:" + std::to_string(server_->port());
  server_.reset();
  auto report = std::async(std::launch::async, [&] { return check_report(check_node(wanted)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  auto server = JoinServer::start(place, folder_ / "join.pem", {});
  ASSERT_TRUE(server) << server.error().message;
  const Json answer = report.get();
  EXPECT_EQ(answer["ok"], true) << answer;
}

TEST(JoinServer, SaysWhatIsWrongWithItsPlace) {
  for (const char* listen : {"", "8543", "127.0.0.1:x", "127.0.0.1:99999"}) {
    const auto server = JoinServer::start(listen, "/nonexistent/join.pem", {});
    ASSERT_FALSE(server);
    EXPECT_EQ(server.error().code, ErrorCode::invalid) << listen;
  }
}

}  // namespace
}  // namespace acb::cloud

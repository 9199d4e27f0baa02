// SPDX-License-Identifier: Apache-2.0
// The control socket with real clients: well-behaved, silent, greedy and gone.
#include "base/files.h"
#include "base/text.h"
#include "cloudburst/control/client.h"
#include "cloudburst/control/server.h"
#include "cloudburst/control/socket.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>
#include <utility>

namespace acb::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Control : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(make_folders(folder_)); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] UniqueFd connected() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = socket_address(path_);
    EXPECT_EQ(::connect(fd.get(), address->get(), SocketAddress::size()), 0);
    return fd;
  }
  [[nodiscard]] static Json echo(const Json& request, const Peer& peer) {
    return {{"said", request}, {"uid", peer.uid}, {"pid", peer.pid}};
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("acb-control-" + random_hex(8));
  std::filesystem::path path_ = folder_ / "s";
};

TEST_F(Control, AnswersAndKnowsWhoAsks) {
  const auto server = ControlServer::open(path_, echo);
  ASSERT_TRUE(server) << server.error().message;
  const auto reply = control_call(path_, {{"op", "poke"}}, seconds(5));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ((*reply)["said"], (Json{{"op", "poke"}}));
  EXPECT_EQ((*reply)["uid"], ::getuid());
  EXPECT_EQ((*reply)["pid"], ::getpid());
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms{0666});
}

TEST_F(Control, ErrorsKeepTheirCode) {
  const auto server = ControlServer::open(path_, [](const Json& request, const Peer&) -> Json {
    if (request.contains("throw")) {
      throw std::runtime_error("secret detail");
    }
    return error_reply({ErrorCode::not_found, "job 7: no such burst"});
  });
  const auto missing = control_call(path_, Json::object(), seconds(5));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_EQ(missing.error().message, "job 7: no such burst");
  const auto thrown = control_call(path_, {{"throw", 1}}, seconds(5));
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().code, ErrorCode::internal);
  EXPECT_EQ(thrown.error().message.find("detail"), std::string::npos);
}

TEST_F(Control, SilentAndSlowClientsHoldUpNobody) {
  const auto server = ControlServer::open(path_, echo);
  const UniqueFd silent = connected();
  const UniqueFd slow = connected();
  ASSERT_TRUE(write_all(slow.get(), R"({"op":)"));
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(control_call(path_, {{"n", round}}, seconds(2))) << round;
  }
  ASSERT_TRUE(write_all(slow.get(), "1}\n"));
  char byte = 0;
  EXPECT_EQ(::read(slow.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '{');
}

TEST_F(Control, OneThatNeverReadsIsDroppedOnceItsRepliesPileUp) {
  ControlServer::Limits limits;
  limits.reply_bytes = 1 << 20;
  std::atomic<int> answered = 0;
  const auto server = ControlServer::open(
      path_,
      [&](const Json&, const Peer&) {
        ++answered;
        return Json{{"long", std::string(100'000, 'x')}};
      },
      limits);
  const UniqueFd greedy = connected();
  for (int request = 0; request < 100; ++request) {
    ASSERT_TRUE(write_all(greedy.get(), "{}\n"));
  }
  ::shutdown(greedy.get(), SHUT_WR);
  int before = -1;
  while (answered == 0 || std::exchange(before, answered.load()) != answered) {
    std::this_thread::sleep_for(milliseconds(200));
  }
  std::string buffer(1 << 16, '\0');
  std::size_t received = 0;
  ssize_t got = 0;
  while ((got = ::read(greedy.get(), buffer.data(), buffer.size())) > 0) {
    received += static_cast<std::size_t>(got);
  }
  EXPECT_GT(received, 1U << 20);
  EXPECT_LT(received, 5U << 20);
  EXPECT_TRUE(control_call(path_, Json::object(), seconds(2)));
}

TEST_F(Control, OneThatAsksALotAtOnceKeepsNoOtherWaiting) {
  std::atomic<int> answered = 0;
  const auto server = ControlServer::open(path_, [&](const Json&, const Peer&) {
    std::this_thread::sleep_for(milliseconds(20));
    ++answered;
    return Json::object();
  });
  const UniqueFd greedy = connected();
  std::string many;
  for (int request = 0; request < 500; ++request) {
    many += "{}\n";
  }
  ASSERT_TRUE(write_all(greedy.get(), many));
  EXPECT_TRUE(control_call(path_, Json::object(), seconds(5)));
  EXPECT_LT(answered, 100);
}

TEST_F(Control, RefusesWhatIsTooLongOrNoObject) {
  const auto server = ControlServer::open(path_, echo);
  for (const std::size_t bytes : {70'000, 4'000'000}) {  // more than a socket holds, too
    const auto too_long = control_call(path_, {{"x", std::string(bytes, 'x')}}, seconds(5));
    ASSERT_FALSE(too_long);
    EXPECT_EQ(too_long.error().code, ErrorCode::invalid) << bytes << too_long.error().message;
    EXPECT_NE(too_long.error().message.find("longer than 65536 bytes"), std::string::npos);
  }
  for (const char* line : {"[1]\n", "nonsense\n", "\n"}) {
    const UniqueFd fd = connected();
    ASSERT_TRUE(write_all(fd.get(), line));
    std::string buffer(4096, '\0');
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    ASSERT_GT(got, 0);
    EXPECT_NE(buffer.find("must be a JSON object"), std::string::npos) << line;
  }
}

TEST_F(Control, TheLongestSilentMakesRoom) {
  ControlServer::Limits limits;
  limits.clients = 2;
  const auto server = ControlServer::open(path_, echo, limits);
  const UniqueFd first = connected();
  const UniqueFd second = connected();
  EXPECT_TRUE(control_call(path_, Json::object(), seconds(2)));
  char byte = 0;
  EXPECT_EQ(::read(first.get(), &byte, 1), 0);  // dropped
}

TEST_F(Control, AClientsDeadlineHoldsWhenTheDaemonHangs) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  const auto server = ControlServer::open(path_, [released](const Json&, const Peer&) -> Json {
    released.wait();
    return Json::object();
  });
  const auto start = std::chrono::steady_clock::now();
  const auto reply = control_call(path_, Json::object(), milliseconds(200));
  const auto took = std::chrono::steady_clock::now() - start;
  release.set_value();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::timeout);
  EXPECT_LT(took, milliseconds(600));
}

TEST_F(Control, AClientsDeadlineHoldsWhenTheBacklogIsFull) {
  const auto address = socket_address(path_);
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), address->get(), SocketAddress::size()), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const UniqueFd waiting = connected();
  const auto reply = control_call(path_, Json::object(), milliseconds(200));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::timeout);
}

TEST_F(Control, ReplacesADeadServersSocketAndRefusesALiveOnes) {
  {
    const auto address = socket_address(path_);
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(dead.get(), address->get(), SocketAddress::size()), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  EXPECT_EQ(control_call(path_, Json::object(), seconds(1)).error().code, ErrorCode::unavailable);
  {
    const auto server = ControlServer::open(path_, echo);
    ASSERT_TRUE(server) << server.error().message;
    const auto second = ControlServer::open(path_, echo);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::exists);
    EXPECT_TRUE(control_call(path_, Json::object(), seconds(2)));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// The two ends against each other over loopback.
#include "mpi_runtime/report/server.h"

#include "mpi_runtime/report/channel.h"
#include "mpi_runtime/report/reporter.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>

namespace acb::train {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class ServerTest : public testing::Test {
 protected:
  ServerTest() : server_(ReportServer::listen("secret", "127.0.0.1").value()) {}

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_.port());
  }
  [[nodiscard]] ReportEnvironment environment(const std::string& secret) const {
    return {address(), secret, "own-0", 1, ""};
  }
  // Runs the server until `client` is through, collecting what it hears.
  template <typename Function>
  auto while_serving(Function client) {
    auto result = std::async(std::launch::async, client);
    while (result.wait_for(milliseconds(0)) != std::future_status::ready) {
      serve();
    }
    return result.get();
  }
  void serve(milliseconds limit = milliseconds(2)) {
    for (ServerEvent& event : server_.poll(-1, limit)) {
      events_.push_back(std::move(event));
    }
  }
  bool serve_until(const std::function<bool()>& reached) {
    const auto limit = Clock::now() + std::chrono::seconds(5);
    while (!reached() && Clock::now() < limit) {
      serve();
    }
    return reached();
  }
  [[nodiscard]] std::vector<std::string> types() const {
    std::vector<std::string> found;
    for (const ServerEvent& event : events_) {
      found.push_back(event.kind == ServerEvent::Kind::joined ? "joined"
                      : event.kind == ServerEvent::Kind::gone
                          ? "gone"
                          : json_or<std::string>(event.message, "type", ""));
    }
    return found;
  }
  [[nodiscard]] bool heard(const std::string& type) const {
    const auto all = types();
    return std::find(all.begin(), all.end(), type) != all.end();
  }

  ReportServer server_;
  std::vector<ServerEvent> events_;
};

UniqueFd raw_connection(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST_F(ServerTest, HearsARankFromHelloToItsEnd) {
  auto reporter = while_serving([&] { return Reporter::connect(environment("secret"), 2, 4); });
  ASSERT_TRUE(reporter) << reporter.error().message;
  EXPECT_TRUE((*reporter)->connected());
  (*reporter)->step(7, 2.5);
  (*reporter)->saved("memory", 7, 0.25);
  ASSERT_TRUE(serve_until([&] { return heard("saved"); }));
  reporter->reset();
  ASSERT_TRUE(serve_until([&] { return heard("gone"); }));

  EXPECT_EQ(events_.front().kind, ServerEvent::Kind::joined);
  EXPECT_EQ(events_.front().hello.rank, 2);
  EXPECT_TRUE(heard("alive")) << "without being asked";
  for (const ServerEvent& event : events_) {
    if (json_or<std::string>(event.message, "type", "") == "step") {
      EXPECT_EQ(event.message["step"], 7);
      EXPECT_EQ(event.message["loss"], 2.5);
    }
  }
}

TEST_F(ServerTest, DoneReturnsOnceConfirmed) {
  auto reporter =
      while_serving([&] { return Reporter::connect(environment("secret"), 0, 1); }).value();
  auto done = std::async(std::launch::async, [&] { return reporter->done(9); });
  ASSERT_TRUE(serve_until([&] { return heard("done"); }));
  EXPECT_NE(done.wait_for(milliseconds(0)), std::future_status::ready);
  server_.send(events_.front().client, {{"type", "done-heard"}});
  EXPECT_TRUE(done.get());
}

TEST_F(ServerTest, DeliversTheOrderToSaveAndExit) {
  auto reporter =
      while_serving([&] { return Reporter::connect(environment("secret"), 0, 1); }).value();
  EXPECT_FALSE(reporter->save_and_exit());
  ASSERT_TRUE(serve_until([&] { return heard("joined"); }));
  server_.send(events_.front().client,
               {{"type", "save-and-exit"}, {"deadline_s", 30}, {"reason", "time limit"}});
  ASSERT_TRUE(serve_until([&] { return reporter->save_and_exit().has_value(); }));
  EXPECT_EQ(reporter->save_and_exit()->reason, "time limit");
  EXPECT_GT(reporter->save_and_exit()->deadline, Clock::now() + std::chrono::seconds(20));
}

TEST_F(ServerTest, DeniesAnotherSecretAndHearsNothing) {
  auto reporter = while_serving([&] { return Reporter::connect(environment("other"), 0, 1); });
  ASSERT_FALSE(reporter);
  EXPECT_EQ(reporter.error().code, ErrorCode::denied);
  EXPECT_TRUE(events_.empty());
}

TEST_F(ServerTest, BadClientsNeitherSpeakNorDisturb) {
  auto reporter =
      while_serving([&] { return Reporter::connect(environment("secret"), 0, 1); }).value();
  std::vector<UniqueFd> bad;
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"),
                                   std::string(100'000, 'x'),
                                   std::string("{\"type\":\"done\",\"step\":1}\n"),
                                   std::string("[[[[\n"),
                                   std::string("\n\n\n")}) {
    bad.push_back(raw_connection(server_.port()));
    ASSERT_TRUE(write_all(bad.back().get(), bytes.substr(0, 4000)));
  }
  events_.clear();
  reporter->step(1, 1.0);
  ASSERT_TRUE(serve_until([&] { return heard("step"); }));
  for (const ServerEvent& event : events_) {
    EXPECT_EQ(event.hello.rank, 0);
  }
  EXPECT_FALSE(heard("done"));
}

TEST_F(ServerTest, AClientThatReadsNothingIsDropped) {
  auto channel = while_serving([&] {
    return Channel::open(
        address(), "secret", {ClientKind::agent, "own-1", -1, 0, 0}, milliseconds(2000));
  });
  ASSERT_TRUE(channel) << channel.error().message;
  const Json large = {{"type", "x"}, {"pad", std::string(60'000, 'x')}};
  for (int i = 0; i < 400 && !heard("gone"); ++i) {
    server_.send(events_.front().client, large);
    serve(milliseconds(0));
  }
  EXPECT_TRUE(heard("gone"));
}

TEST_F(ServerTest, AHostAnswersWhateverItsProgramDoes) {
  EXPECT_TRUE(host_answers(address(), milliseconds(1000)));      // takes it, though nobody polls
  EXPECT_TRUE(host_answers("127.0.0.1:1", milliseconds(1000)));  // refuses it

  // A full queue drops what comes: no answer at all, as from a host without power.
  const UniqueFd deaf(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&place);
  socklen_t size = sizeof place;
  ASSERT_EQ(::bind(deaf.get(), generic, size), 0);
  ASSERT_EQ(::listen(deaf.get(), 0), 0);
  ASSERT_EQ(::getsockname(deaf.get(), generic, &size), 0);
  const int port = ntohs(place.sin_port);
  const UniqueFd first = raw_connection(port);
  EXPECT_FALSE(host_answers("127.0.0.1:" + std::to_string(port), milliseconds(300)));
}

TEST(Reporter, IsSilentWithoutASupervisor) {
  auto reporter = Reporter::connect({}, 0, 1);
  ASSERT_TRUE(reporter);
  (*reporter)->step(1, 1.0);
  EXPECT_TRUE((*reporter)->done(1));
  EXPECT_FALSE((*reporter)->connected());
  EXPECT_FALSE((*reporter)->save_and_exit());
}

TEST(Reporter, SaysThatTheSecretIsMissing) {
  const auto reporter = Reporter::connect({"127.0.0.1:1", "", "n", 1, ""}, 0, 1);
  ASSERT_FALSE(reporter);
  EXPECT_NE(reporter.error().message.find("AUTOCLOUD_SECRET"), std::string::npos);
}

}  // namespace
}  // namespace acb::train

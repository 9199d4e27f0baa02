// SPDX-License-Identifier: Apache-2.0
// The supervisor's end: accepts ranks and agents, checks them, and hands on what they say. One
// thread drives it; no client can block it: sockets do not block, a client that says nonsense,
// reads nothing or never proves itself is dropped.
#pragma once

#include "base/files.h"
#include "base/json.h"
#include "base/result.h"
#include "mpi_runtime/report/message.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace acb::train {

struct ServerEvent {
  enum class Kind { joined, message, gone };
  Kind kind = Kind::message;
  int client = 0;  ///< names the connection; never used twice
  Hello hello;     ///< who it is
  Json message;    ///< of Kind::message
};

class ReportServer {
 public:
  /// Listens on a free port of `bind_address` ("127.0.0.1", "0.0.0.0").
  [[nodiscard]] static Result<ReportServer> listen(std::string secret,
                                                   const std::string& bind_address);
  [[nodiscard]] int port() const { return port_; }

  /// Waits for traffic, for `wake_fd` to become readable (-1: none), or for `limit`, and returns
  /// what proven clients said, in order.
  [[nodiscard]] std::vector<ServerEvent> poll(int wake_fd, std::chrono::milliseconds limit);
  /// Queues a message; a client that is gone is passed over. What does not go out at once goes with
  /// the next poll().
  void send(int client, const Json& message);
  /// Closes the connection; no event follows. The reason is told.
  void refuse(int client, const std::string& reason);

 private:
  struct Client {
    UniqueFd fd;
    std::string nonce;
    LineBuffer lines;
    std::string outgoing;
    bool proven = false;
    bool broken = false;
    Hello hello;
    std::chrono::steady_clock::time_point since;
  };
  ReportServer(std::string secret, UniqueFd fd, int port)
      : secret_(std::move(secret)), listener_(std::move(fd)), port_(port) {}
  void accept_clients();
  void read_from(int id, Client& client, std::vector<ServerEvent>& events);
  void handle_line(int id,
                   Client& client,
                   const std::string& line,
                   std::vector<ServerEvent>& events);
  static void flush(Client& client);
  void drop_broken(std::vector<ServerEvent>& events);

  std::string secret_;
  UniqueFd listener_;
  int port_ = 0;
  int next_id_ = 1;
  std::map<int, Client> clients_;
};

}  // namespace acb::train

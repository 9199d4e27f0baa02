// SPDX-License-Identifier: Apache-2.0
// The client's end of a connection to the supervisor. Not thread-safe: one thread uses it.
#pragma once

#include "base/files.h"
#include "base/json.h"
#include "base/result.h"
#include "mpi_runtime/report/message.h"

#include <chrono>
#include <string>
#include <vector>

namespace acb::train {

/// Whether the host of "host:port" gives any answer within `limit`: it takes a connection, also for
/// a program that hangs, or refuses it. False where there is no route, no power, no network.
[[nodiscard]] bool host_answers(const std::string& address, std::chrono::milliseconds limit);

class Channel {
 public:
  /// Connects to "host:port" and goes through the handshake, within `limit`, trying again while
  /// nobody answers. `denied`: the other side does not know the secret, or refuses ours.
  [[nodiscard]] static Result<Channel> open(const std::string& address,
                                            const std::string& secret,
                                            const Hello& hello,
                                            std::chrono::milliseconds limit);

  /// Sends one message; blocks while the connection is full, for at most 2 s.
  [[nodiscard]] Status send(const Json& message);
  /// What has arrived by now; `unavailable` once the other side has closed. Does not block.
  [[nodiscard]] Result<std::vector<Json>> receive();
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}
  [[nodiscard]] Status shake_hands(const std::string& secret,
                                   const Hello& hello,
                                   std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] Result<Json> wait_for_message(std::chrono::steady_clock::time_point deadline);

  UniqueFd fd_;
  LineBuffer lines_;
  std::vector<Json> ahead_;  // arrived together with the end of the handshake
};

}  // namespace acb::train

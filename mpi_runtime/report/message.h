// SPDX-License-Identifier: Apache-2.0
// The wire between the supervisor and its ranks and agents: one JSON object per line over TCP.
//
//   supervisor -> client  {"v":1,"type":"challenge","nonce":H}
//   client -> supervisor {"v":1,"type":"hello","kind":"rank"|"agent","node":..,"rank":..,"size":..,
//                          "start":..,"nonce":H,"mac":M}
//   supervisor -> client  {"type":"welcome","mac":M} or {"type":"refused","reason":..}, then closes
// and from then on
//   rank ->   alive | step {step, loss} | saved {level, step, seconds} | done {step} | give-up
//   {reason} agent ->  alive | clear {start} | notice {deadline_s} | terminate {reason}
//   -> rank   alive | save-and-exit {deadline_s, reason} | done-heard
//   -> agent  alive | clear {start} | end
// Deadlines are seconds from now, since clocks differ between hosts. An unknown type is ignored, so
// that a later version may say more; another "v" is refused.
//
// M is HMAC-SHA256 under the run's secret over everything that the hello says and both nonces, so a
// recorded hello is worth nothing. What follows the handshake is neither signed nor encrypted.
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace acb::train {

constexpr int kProtocolVersion = 1;
constexpr std::size_t kLineLimit = 4096;
constexpr std::chrono::milliseconds kAliveInterval{500};

enum class ClientKind { rank, agent };

struct Hello {
  ClientKind kind = ClientKind::rank;
  std::string node;
  int rank = -1;  ///< -1 for an agent
  int size = 0;
  int start = 0;  ///< which mpirun of the run a rank belongs to
};

/// The code that proves a client to the supervisor, in hexadecimal.
[[nodiscard]] std::string client_code(std::string_view secret,
                                      const Hello& hello,
                                      std::string_view server_nonce,
                                      std::string_view client_nonce);
/// The code that proves the supervisor to a client.
[[nodiscard]] std::string server_code(std::string_view secret,
                                      std::string_view server_nonce,
                                      std::string_view client_nonce);
/// Compares in time that does not depend on where the texts differ.
[[nodiscard]] bool same_code(std::string_view a, std::string_view b);

[[nodiscard]] Json hello_message(const Hello& hello,
                                 std::string_view secret,
                                 std::string_view server_nonce,
                                 std::string_view client_nonce);
/// The hello in `message` if its code is right for `server_nonce`: `denied` if not, `invalid` for
/// another protocol version or impossible values.
[[nodiscard]] Result<Hello> check_hello(const Json& message,
                                        std::string_view secret,
                                        std::string_view server_nonce);

/// Cuts a stream into lines.
class LineBuffer {
 public:
  /// `invalid` once a line grows beyond kLineLimit.
  [[nodiscard]] Status add(std::string_view bytes);
  /// The next whole line, without its end.
  [[nodiscard]] std::optional<std::string> next();

 private:
  std::string bytes_;
};

}  // namespace acb::train

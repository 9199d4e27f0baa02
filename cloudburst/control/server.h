// SPDX-License-Identifier: Apache-2.0
// The daemon's control socket: a Unix stream socket on which each line is a JSON object, answered
// by one line. Who asks is known from the kernel, not from what the request says.
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace acb::cloud {

/// The process at the other end (SO_PEERCRED).
struct Peer {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
};

/// {"error":{"code":..., "message":...}}, the answer of a request that failed.
[[nodiscard]] Json error_reply(const Error& error);

/// Serves until destroyed, from one thread of its own. Every client is written to and read from
/// only when that does not block, so a slow or silent one holds up nobody. The socket is 0666:
/// everybody may ask, the handler decides by the peer.
class ControlServer {
 public:
  /// Called on the server's thread, one request at a time: has to answer from memory, without
  /// waiting for the network or Slurm. What it throws becomes an `internal` error reply.
  using Handler = std::function<Json(const Json& request, const Peer& peer)>;

  struct Limits {
    std::size_t clients = 256;  ///< with more, the one that is silent for longest is dropped
    std::size_t request_bytes = 65536;
    std::size_t reply_bytes = std::size_t{32} << 20;  ///< unsent replies per client
    std::chrono::milliseconds idle{30000};            ///< a client silent for this long is dropped
  };

  /// `exists` where a live server answers on the path already; a dead one's socket is replaced. The
  /// folder must exist.
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> open(
      const std::filesystem::path& path, Handler handler, Limits limits);
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> open(
      const std::filesystem::path& path, Handler handler);

  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  /// Closes all connections and removes the socket.
  ~ControlServer();

 private:
  class Loop;
  explicit ControlServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// The control socket of a running server: one JSON object a line, one reply line each.
#pragma once

#include "base/files.h"
#include "cloudsim/simulator.h"

#include <filesystem>
#include <memory>
#include <thread>

namespace acb::sim {

class ControlSocket {
 public:
  /// Listens on `path` (mode 0600) in a thread of its own, until destroyed.
  [[nodiscard]] static Result<std::unique_ptr<ControlSocket>> open(
      const std::filesystem::path& path, Simulator& simulator);
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;
  ~ControlSocket();

 private:
  ControlSocket(std::filesystem::path path, UniqueFd fd, Simulator& simulator);
  void run();

  std::filesystem::path path_;
  UniqueFd listener_;
  UniqueFd stop_;  // an eventfd
  Simulator& simulator_;
  std::thread thread_;
};

/// What a request is answered with; {"error": {code, message}} where it fails. Requests:
/// {op: take, instance_id, notice_s}, {op: instances}, {op: bill}, {op: fault_add, name, rule},
/// {op: fault_list}, {op: fault_remove, name}.
[[nodiscard]] Json control_reply(Simulator& simulator, const Json& request);

/// Asks the server of this state folder. `unavailable` when there is none.
[[nodiscard]] Result<Json> ask(const std::filesystem::path& state, const Json& request);

}  // namespace acb::sim

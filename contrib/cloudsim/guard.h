// SPDX-License-Identifier: Apache-2.0
// Sees to it that nothing booted outlives the server, not even a server killed with SIGKILL: a
// small process of its own, which knows what runs and cuts it once its pipe to the server closes.
#pragma once

#include "base/files.h"

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace acb::sim {

/// A destroy command that takes longer is killed.
inline constexpr std::chrono::seconds kDestroyLimit{20};

/// What it takes to cut an instance.
struct Booted {
  pid_t group = 0;
  std::string destroy_command;  ///< for /bin/sh; empty: none
  std::map<std::string, std::optional<std::string>> environment;
};

class Guard {
 public:
  /// Forks: call it while the process has one thread.
  [[nodiscard]] static Result<Guard> start();
  Guard(Guard&&) = default;
  Guard& operator=(Guard&&) = delete;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  /// Ends the guard, which first cuts whatever it still watches.
  ~Guard();

  [[nodiscard]] Status watch(const std::string& instance_id, const Booted& booted);
  [[nodiscard]] Status forget(const std::string& instance_id);

 private:
  Guard(UniqueFd pipe, pid_t pid) : pipe_(std::move(pipe)), pid_(pid) {}

  UniqueFd pipe_;
  pid_t pid_ = -1;
};

}  // namespace acb::sim

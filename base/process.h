// SPDX-License-Identifier: Apache-2.0
// Child processes, by posix_spawn: never fork in a process that has threads or an MPI library in
// it.
#pragma once

#include "base/result.h"

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace acb {

struct ProcessSpec {
  std::vector<std::string> arguments;  ///< the program, looked up in PATH, and its arguments
  /// Added to or replacing what this process has; nullopt removes.
  std::map<std::string, std::optional<std::string>> environment = {};
  int output_fd = -1;  ///< becomes stdout and stderr; -1 inherits
  /// A process group of its own, so that a signal can reach its children too.
  bool own_group = false;
};

/// Starts a child with no signal blocked or ignored, whatever this process blocks (slurmctld's
/// children inherit a mask with SIGTERM in it). Returns its pid.
[[nodiscard]] Result<pid_t> spawn(const ProcessSpec& spec);

struct Finished {
  int exit_code = 0;   ///< of a child that exited; 128 + signal of one that was killed
  std::string output;  ///< stdout and stderr, at most 1 MiB
};
/// Runs a child to its end. After `limit` it is killed with its group, and the result is `timeout`.
[[nodiscard]] Result<Finished> run_process(ProcessSpec spec, std::chrono::milliseconds limit);

/// The exit code of a wait status, 128 + signal for a killed child.
[[nodiscard]] int exit_code_of(int wait_status);

}  // namespace acb

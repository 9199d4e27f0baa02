// SPDX-License-Identifier: Apache-2.0
// The hands of state.h: agents, mpirun, the ranks' connections, Slurm and the logs. Everything runs
// on the calling thread except for Slurm's commands, which may take seconds.
#pragma once

#include "base/result.h"
#include "mpi_runtime/supervise/nodes.h"
#include "mpi_runtime/supervise/state.h"

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace acb::train {

struct RunSettings {
  std::vector<std::string> mpirun;  ///< the user's own line: mpirun, its options, program
  std::string job;                  ///< Slurm's job id; empty outside of Slurm
  std::vector<NodeShare> nodes;     ///< the first is this one
  std::filesystem::path run_folder;
  std::filesystem::path agent;  ///< the program autocloud-agent
  std::filesystem::path memory = "/dev/shm";
  std::string address;          ///< IPv4 address at which the nodes reach this one
  std::optional<Seconds> left;  ///< of the time limit, until Slurm is heard
  Policy policy;
};

/// SIGCHLD, and what ends a run: SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2.
[[nodiscard]] sigset_t supervised_signals();

/// Supervises to the end. Takes the signals above, which must be blocked in every thread of the
/// process. Returns the exit code for autocloud-run; an error if the run could not start.
[[nodiscard]] Result<int> supervise(const RunSettings& settings);

/// An IPv4 address of this host that others reach: what `name` resolves to, if that is not the
/// loopback; else the first address of an interface that is up; else 127.0.0.1.
[[nodiscard]] std::string reachable_address(const std::string& name);

}  // namespace acb::train

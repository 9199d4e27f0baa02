// SPDX-License-Identifier: Apache-2.0
// The node's agent: lives as long as the run, whatever happens to ranks and to mpirun. It tells the
// supervisor that the node lives, owns the memory folder, ends what a dead mpirun left on the node,
// and passes on Slurm's SIGTERM and the announcement that the node will be reclaimed.
#pragma once

#include "base/result.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace acb::train {

struct AgentSettings {
  std::string supervisor;  ///< AUTOCLOUD_SUPERVISOR
  std::string secret;      ///< AUTOCLOUD_SECRET
  std::string run;         ///< AUTOCLOUD_RUN
  std::string memory;      ///< AUTOCLOUD_MEMORY
  std::string node;        ///< SLURMD_NODENAME or the host's name
  /// Written by whatever watches for a reclaim: {"deadline": "2026-01-31T23:59:59Z"}.
  std::filesystem::path notice = "/run/autocloud-burst/notice";
  /// Without a word from the supervisor for so long, its host is asked for any sign of life,
  std::chrono::seconds silence{3};
  /// which it may take so long to give. Without one, host and supervisor are lost.
  std::chrono::seconds answer{2};
  /// Without a word for so long, the supervisor is gone for good, whatever its host does.
  std::chrono::seconds orphaned{30};
  /// The burst whose batch host is said to be lost; empty: not one, or not under Slurm.
  std::string job;
};

/// Runs until the supervisor says "end" or is gone; then this node's ranks are ended and the memory
/// folder is removed. Where its host is gone with it, Slurm is told. An error if it could not
/// start. `signal_fd` is a signalfd for SIGTERM.
[[nodiscard]] Status run_agent(const AgentSettings& settings, int signal_fd);

/// The seconds left by a notice file's content; nullopt if it holds no deadline.
[[nodiscard]] std::optional<std::chrono::duration<double>> notice_left(
    const std::string& content, std::chrono::system_clock::time_point now);

}  // namespace acb::train

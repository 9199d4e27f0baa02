// SPDX-License-Identifier: Apache-2.0
// The only class that speaks to Slurm, through libslurm. Every call is an RPC to slurmctld and
// blocks until it answers, up to Slurm's MessageTimeout for each controller in turn: use it from
// one thread that may hang. libslurm ends the process with exit(1) when slurm.conf cannot be read
// or makes no sense, which can happen in open() alone: call that first, before anything that needs
// an orderly end.
#pragma once

#include "base/result.h"
#include "cloudburst/plan/view.h"

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace acb::cloud {

class SlurmClient {
 public:
  /// Reads slurm.conf (SLURM_CONF or the built-in place). Once per process.
  [[nodiscard]] static SlurmClient open(std::vector<std::string> our_nodes);
  SlurmClient(SlurmClient&&) noexcept;
  SlurmClient& operator=(SlurmClient&&) noexcept;
  ~SlurmClient();

  /// Our nodes, bursts, and whatever other job has one of our nodes. What did not change since the
  /// last call is not sent again. `unavailable` where slurmctld does not answer.
  [[nodiscard]] Result<SlurmPicture> load();

  /// Those of our nodes that slurm.conf does not have.
  [[nodiscard]] std::vector<std::string> missing(const SlurmPicture& picture) const;

  [[nodiscard]] Status set_address(const std::string& node, const std::string& address);
  /// At once: running jobs without kill_on_node_fail shrink, configuring ones are requeued.
  [[nodiscard]] Status set_down(const std::vector<std::string>& nodes, const std::string& reason);
  /// Ends every job on the nodes (configuring ones are requeued) and powers them down.
  [[nodiscard]] Status power_down_force(const std::vector<std::string>& nodes,
                                        const std::string& reason);
  [[nodiscard]] Status resume(const std::vector<std::string>& nodes);
  [[nodiscard]] Status requeue(std::uint32_t job);
  [[nodiscard]] Status set_start(std::uint32_t job, WallTime at);
  [[nodiscard]] Status set_comment(std::uint32_t job, const std::string& comment);

 private:
  class Messages;
  explicit SlurmClient(std::vector<std::string> our_nodes);

  std::unordered_set<std::string> ours_;
  std::unique_ptr<Messages> messages_;
};

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// All that the runtime asks of Slurm, through its commands: they exist on every node, need no build
// per Slurm version, and a site may wrap them. Each blocks for at most its limit; call them off the
// supervisor's thread.
#pragma once

#include "base/result.h"
#include "base/text.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acb::train {

/// The nodes that Slurm counts to the job now (`squeue -o %N`): those that went DOWN are missing.
[[nodiscard]] Result<std::vector<std::string>> slurm_job_nodes(const std::string& job);
/// What is left of its time limit (`squeue -o %L`); nullopt: it has none.
[[nodiscard]] Result<std::optional<std::chrono::seconds>> slurm_time_left(const std::string& job);
/// Asks for a requeue (`scontrol requeue`). Slurm ends this job's processes as soon as it has taken
/// it, scontrol's among them, so a job that Slurm shows as back in its queue is a success whatever
/// became of the request. `denied` for a job that its user has cancelled, since a requeue would
/// undo that, and where Slurm refuses; another error: ask again. With the words of scontrol.
[[nodiscard]] Status slurm_requeue(const std::string& job);
/// Whether Slurm has put the job back into its queue after the start that `restarts` counts, by its
/// line from `scontrol show job --oneliner`.
[[nodiscard]] bool was_requeued(std::string_view job_line, std::int64_t restarts);
/// Whether scontrol's words about a requeue say that asking again would not help.
[[nodiscard]] bool is_refusal(std::string_view words);
/// Whether a job's user has cancelled it, by its line from `scontrol show job --oneliner`. Slurm
/// shows a job that it is ending as COMPLETING, whatever the cause (measured on 22.05): a cause
/// other than the user is told by the run time, the preemption time, or a restart count above
/// `restarts`.
[[nodiscard]] bool was_cancelled(std::string_view job_line, std::int64_t restarts);
/// For a node that no longer reaches the job's batch host: says so in the job's comment
/// (base/lost_host.h), for the daemon, and sends the batch script a signal that changes nothing:
/// slurmctld thereby tries the host at once, instead of at its next ping, and marks it if it does
/// not answer. Nothing is done for a job that does not run, has been started again, or where
/// another node has just said it.
[[nodiscard]] Status slurm_report_lost_host(const std::string& job);
/// The comment for that, from `scontrol show job`; nullopt: nothing is to be said.
[[nodiscard]] std::optional<std::string> lost_host_comment(std::string_view job_text,
                                                           std::int64_t restarts,
                                                           WallTime now);
/// srun's command line for one process on one node, beside whatever runs there, and untouched by
/// the loss of others.
[[nodiscard]] std::vector<std::string> srun_on_node(const std::string& node,
                                                    const std::vector<std::string>& command);

/// squeue's "[days-][[hours:]minutes:]seconds"; nullopt for UNLIMITED. NOT_SET is an error: the
/// limit is not known yet.
[[nodiscard]] Result<std::optional<std::chrono::seconds>> parse_time_left(std::string_view text);

}  // namespace acb::train

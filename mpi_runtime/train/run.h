// SPDX-License-Identifier: Apache-2.0
// A training run from its start, or from its newest checkpoint, to its end or to an order to leave.
#pragma once

#include "base/result.h"
#include "mpi_runtime/comm/communicator.h"
#include "mpi_runtime/config/train_config.h"
#include "mpi_runtime/report/reporter.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

namespace acb::train {

/// What a run takes from around it.
struct RunEnvironment {
  ReportEnvironment report;
  std::string run;  ///< its id, in names of checkpoints
  /// When the time limit ends the job; the supervisor decides where there is one.
  std::optional<std::chrono::steady_clock::time_point> end;
  const std::atomic<bool>* told_to_stop = nullptr;  ///< SIGTERM came
};
/// Reads the environment: AUTOCLOUD_* and SLURM_JOB_END_TIME.
[[nodiscard]] RunEnvironment run_environment(const TrainConfig& config);

enum class RunEnd {
  done,  ///< all steps, and the final checkpoint in <run.folder>/final
  left,  ///< saved, and to be started again
};

/// Every rank calls it with the same configuration. Rank 0 prints a line per step to stdout:
/// "step 12/200 loss 3.1415 tokens/s 1234 nodes 4".
[[nodiscard]] Result<RunEnd> run_training(Communicator& comm,
                                          const TrainConfig& config,
                                          const RunEnvironment& environment,
                                          Reporter& reporter);

}  // namespace acb::train

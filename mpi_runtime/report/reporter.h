// SPDX-License-Identifier: Apache-2.0
// The rank's line to its supervisor (autocloud-run). A thread of its own says "alive" twice a
// second, whatever the rank is doing; the rank adds its steps, its saves and its end. Orders come
// back the same way, since mpirun does not forward signals reliably.
//
// A rank without a supervisor (started by hand, under a debugger) gets a Reporter that says
// nothing and receives nothing, so that callers need no special case.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace acb::train {

/// What autocloud-run puts into the environment of every rank.
struct ReportEnvironment {
  std::string supervisor;  ///< AUTOCLOUD_SUPERVISOR, "host:port"; empty: there is none
  std::string secret;      ///< AUTOCLOUD_SECRET, the key of this run; never on a command line
  std::string node;        ///< SLURMD_NODENAME, else the host's name
  int start = 0;       ///< AUTOCLOUD_START: 1 for the first mpirun of the run, 2 for the next...
  std::string memory;  ///< AUTOCLOUD_MEMORY: see agent/memory_folder.h; empty: none
};
/// Reads this process's environment.
[[nodiscard]] ReportEnvironment report_environment();

/// "Save, then leave MPI and exit with 0", given when the time limit or a reclaim notice is near.
struct SaveAndExit {
  std::chrono::steady_clock::time_point deadline;  ///< the process is killed after this
  std::string reason;                              ///< for the log: "time limit", "SIGTERM", ...
};

class Reporter {
 public:
  /// Connects and proves knowledge of the secret; blocks for at most 10 s. Call it first thing
  /// after MPI_Init, since a start on which ranks stay unheard is ended (autocloud-run
  /// --start-timeout). Without a supervisor in the environment it succeeds at once with a silent
  /// Reporter. `denied`: the secrets differ; `unavailable`: nobody answers.
  [[nodiscard]] static Result<std::unique_ptr<Reporter>> connect(const ReportEnvironment& env,
                                                                 int rank,
                                                                 int size);
  virtual ~Reporter() = default;

  /// The step is complete: the weights after it are final on this rank. Does not block.
  virtual void step(std::int64_t step, double loss) = 0;
  /// A checkpoint of the state after `step` is complete at this level ("memory", "local",
  /// "shared") and took `seconds`. The longest save sets how early the time limit is answered. Does
  /// not block.
  virtual void saved(std::string_view level, std::int64_t step, double seconds) = 0;
  /// The whole work of this rank is complete, final checkpoint included. Blocks until the
  /// supervisor has confirmed, for at most 5 s. The run counts as complete when every rank has said
  /// this; an exit code counts for nothing.
  [[nodiscard]] virtual Status done(std::int64_t step) = 0;

  /// The run cannot go on, and starting it again would not help: its settings were refused, its
  /// data is not what it was. The supervisor ends the run with this reason instead of starting
  /// again. Blocks until it has heard, for at most 5 s.
  virtual void give_up(std::string_view reason) = 0;

  /// The order to save and exit, once one has come. Ranks see it at different moments: agree (a
  /// maximum over the ranks, after each step) before acting on it.
  [[nodiscard]] virtual std::optional<SaveAndExit> save_and_exit() const = 0;
  /// False without a supervisor, and once its connection has broken.
  [[nodiscard]] virtual bool connected() const = 0;

 protected:
  Reporter() = default;
  Reporter(const Reporter&) = default;
  Reporter& operator=(const Reporter&) = default;
};

}  // namespace acb::train

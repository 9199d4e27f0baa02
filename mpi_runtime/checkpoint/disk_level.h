// SPDX-License-Identifier: Apache-2.0
// One level on disk, and its save under way. The state is copied in the training thread; a thread
// writes the shard; once every rank's shard is durable the committing ranks' threads write the
// manifest and remove what is no longer kept. Between these phases the ranks agree, in their
// training threads.
#pragma once

#include "base/result.h"
#include "mpi_runtime/checkpoint/checkpoint.h"
#include "mpi_runtime/checkpoint/set_folder.h"
#include "mpi_runtime/comm/communicator.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

namespace acb::train {

/// Removes what writers of the folder `set` that were killed have left beside it. A `set` that one
/// of them had moved away to replace it is put back. For one process, while no other writes it.
void sweep_unfinished(const std::filesystem::path& set);

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class DiskLevel {
 public:
  using Clock = std::chrono::steady_clock;

  /// A set that this start has written or loaded.
  struct TrustedSet {
    std::string set;
    std::int64_t step = 0;
  };

  /// `commits`: the ranks whose shards this rank's manifest lists; empty if another rank commits.
  /// `keep`: sets kept in `folder`; 0: `folder` itself is to become the one set.
  DiskLevel(Communicator& comm,
            std::string name,
            std::filesystem::path folder,
            std::vector<int> commits,
            int keep);

  /// Copies the state and starts to write it; idle() only if that very step is there already.
  void start(const ShardPlan& plan, const SetIdentity& identity);
  [[nodiscard]] bool idle() const { return phase_ == Phase::idle; }
  /// Whether this rank's task is done; advance() would not block on it.
  [[nodiscard]] bool ready() const;
  void wait() const;
  /// Collective, once all are ready: goes to the next phase. `told` hears of a commit on rank 0.
  [[nodiscard]] Status advance(const std::function<void(const Saved&)>& told);
  /// How the last save ended, the same on all ranks up to the message.
  [[nodiscard]] const Status& last_result() const { return last_result_; }

  /// What has been loaded from here counts as sound when old sets are removed.
  void trust(TrustedSet set) { trusted_.push_back(std::move(set)); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] bool commits_here() const { return !commits_.empty(); }
  [[nodiscard]] Clock::time_point last_start() const { return last_start_; }
  [[nodiscard]] double stall_seconds() const { return stall_seconds_; }
  [[nodiscard]] double write_seconds() const { return write_seconds_; }

 private:
  enum class Phase { idle, writing, committing };
  [[nodiscard]] Status finish_writing();
  [[nodiscard]] Status finish_commit(const std::function<void(const Saved&)>& told);
  void abandon(const Status& mine);

  Communicator& comm_;
  std::string name_;
  std::filesystem::path folder_;
  std::vector<int> commits_;
  int keep_;
  Phase phase_ = Phase::idle;
  Status last_result_;
  std::vector<TrustedSet> trusted_;
  SetIdentity identity_;
  std::vector<std::string> sections_;
  std::filesystem::path work_;  ///< where the set is written
  bool wrote_ = false;
  Clock::time_point last_start_ = Clock::now();
  double stall_seconds_ = 1;  ///< until the first save has been measured
  double write_seconds_ = 1;
  std::vector<std::byte> snapshot_;
  std::future<Result<StoredShard>> write_;  ///< last: their threads use what is above
  std::future<Status> commit_;
};

}  // namespace acb::train

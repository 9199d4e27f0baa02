// SPDX-License-Identifier: Apache-2.0
// The level in the nodes' memory: each rank's shard in its own node, and a copy in a partner node,
// so that the loss of one node loses nothing.
#pragma once

#include "base/result.h"
#include "mpi_runtime/checkpoint/memory.h"
#include "mpi_runtime/checkpoint/shard.h"
#include "mpi_runtime/comm/communicator.h"

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace acb::train {

/// For each rank, the rank on another node that keeps a copy of its shard: nodes form a ring in the
/// order of their first ranks, and a rank's partner is its opposite number on the next node. -1
/// where all ranks are on one node.
[[nodiscard]] std::vector<int> partners(std::span<const std::string> nodes);

class MemoryLevel {
 public:
  /// `comm` must outlive it; `set` names this start's files.
  MemoryLevel(Communicator& comm,
              std::filesystem::path folder,
              std::span<const std::string> nodes,
              std::string set);

  /// Saves the shard here and at the partner. Collective. The outer error is the communicator's,
  /// the inner one this rank's own: the others learn of it only when told. The copy of the step
  /// before stays until the next save.
  [[nodiscard]] Result<Status> save(const ShardPlan& plan, std::int64_t step);

  /// Removes what other starts left in this node's folder. For one rank of each node, once a save
  /// of this start is known to be complete on all ranks.
  void drop_other_sets() const;

 private:
  [[nodiscard]] Result<MemoryShard*> shard_for(int index, bool own, std::size_t bytes);
  [[nodiscard]] Result<Status> exchange_copies(std::span<const std::byte> mine, std::int64_t step);

  Communicator& comm_;
  std::filesystem::path folder_;
  std::string set_;
  std::vector<int> partners_;
  std::map<int, MemoryShard> shards_;               ///< by rank: the own one and the copies
  std::map<int, std::vector<std::byte>> incoming_;  ///< by rank, kept between saves
};

}  // namespace acb::train

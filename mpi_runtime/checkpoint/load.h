// SPDX-License-Identifier: Apache-2.0
// Loading, by all ranks together: they agree on the newest step of which every shard is in some
// rank's reach, each rank reads and verifies its share of the shards, and the elements go over the
// communicator to whoever holds them now.
#pragma once

#include "base/result.h"
#include "mpi_runtime/checkpoint/checkpoint.h"
#include "mpi_runtime/checkpoint/set_folder.h"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace acb::train {

/// The settings that a set was made with, so that a refusal can name what differs.
inline constexpr const char* kSettingsSection = "checkpoint.settings";

/// Shards of one set that a rank has found.
struct Offer {
  std::string level;  ///< "memory", "local", "shared" or "folder"
  std::string set = {};
  std::int64_t step = 0;
  int world = 1;
  std::filesystem::path place = {};  ///< the set's folder; for memory, the one shard's file
  std::vector<StoredShard> shards = {};
  std::string fault = {};  ///< what is there, but cannot be read; then nothing else counts
};

/// Every sound copy in a node's memory folder.
[[nodiscard]] std::vector<Offer> memory_offers(const std::filesystem::path& folder);
/// Every committed set of a disk level, as its manifests tell, and the faults of those that do not.
[[nodiscard]] std::vector<Offer> disk_offers(const std::filesystem::path& level,
                                             std::string_view name);

/// Collective. Offers of "memory" and "local" are read by the rank that makes them; those of the
/// other levels, which rank 0 alone makes, by all ranks in turn. Live state is written only once
/// all is verified. nullopt: nobody has offered a whole set, nor a fault. Errors as in
/// Checkpointer::load_newest.
class Loader {
 public:
  Loader(Communicator& comm, const CheckpointConfig& config, std::span<const Section> sections)
      : comm_(comm), config_(config), sections_(sections) {}

  [[nodiscard]] Result<std::optional<Loaded>> load(const std::vector<Offer>& mine);

 private:
  struct Source {
    std::string level;
    std::filesystem::path place;
    StoredShard shard;
    int rank = 0;  ///< who reads it
  };
  /// A step that may be loaded: the sources of its shards, by index.
  struct Candidate {
    std::string level;
    std::string set;
    std::int64_t step = 0;
    std::vector<Source> sources;
  };
  struct Found {
    std::vector<Candidate> candidates;  ///< the newest step first
    std::vector<std::string> faults;
  };
  struct ReadShard {
    ShardHeader header;
    std::vector<std::byte> bytes;
  };
  /// What every rank has read and what every rank wants, by rank.
  struct Picture {
    std::vector<std::vector<ShardHeader>> stored;
    std::vector<ShardHeader> wanted;
  };

  [[nodiscard]] Result<Found> agree_on_candidates(const std::vector<Offer>& mine);
  [[nodiscard]] Result<std::vector<ReadShard>> read_share(const Candidate& candidate) const;
  [[nodiscard]] ShardHeader wanted_here() const;
  [[nodiscard]] Result<Picture> share_headers(const std::vector<ReadShard>& read);
  [[nodiscard]] Status check(const Picture& picture) const;
  [[nodiscard]] Status check_sections(const ShardHeader& header) const;
  [[nodiscard]] Status check_settings(const Picture& picture) const;
  [[nodiscard]] Status check_coverage(const Picture& picture) const;
  [[nodiscard]] Status move_elements(const Picture& picture, const std::vector<ReadShard>& read);
  [[nodiscard]] static std::vector<std::byte> pack(const std::vector<ReadShard>& read,
                                                   const ShardHeader& wanted);
  [[nodiscard]] std::byte* live(const StoredPart& wanted) const;
  void unpack(const std::vector<ShardHeader>& stored,
              const ShardHeader& wanted,
              const std::byte* at) const;
  [[nodiscard]] Status load_small_state(const Picture& picture);
  [[nodiscard]] static std::string inexact_reason(const Picture& picture);

  Communicator& comm_;
  const CheckpointConfig& config_;
  std::span<const Section> sections_;
};

}  // namespace acb::train

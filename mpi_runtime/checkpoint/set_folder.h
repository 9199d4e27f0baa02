// SPDX-License-Identifier: Apache-2.0
// A set on disk: <level>/step-<step, ten digits>-<set>/ with shard-<index, five digits> and, once
// all of them are durable, manifest.json: a JSON object on the first line, the XXH3 of that line in
// hexadecimal on the second. A folder without a valid manifest is no checkpoint.
//
// Functions are safe in any thread, as long as one process writes a given set.
#pragma once

#include "base/result.h"
#include "mpi_runtime/checkpoint/shard.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace acb::train {

struct StoredShard {
  int index = 0;
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};

struct Manifest {
  SetIdentity identity;
  std::string level;  ///< "local" (this node's shards only), "shared" or "folder"
  std::vector<std::string> sections;
  std::vector<StoredShard> shards;  ///< those in this folder, ascending
};

struct SetFolder {
  std::filesystem::path path;
  Manifest manifest;
};

[[nodiscard]] std::string folder_name(const SetIdentity& identity);
[[nodiscard]] std::filesystem::path shard_path(const std::filesystem::path& set, int index);

/// Writes a new file, makes it durable, and reads it back to compare. On an error, `exhausted` for
/// a full disk or quota among them, no file is left. `exists`: somebody else writes this set.
[[nodiscard]] Result<StoredShard> write_shard_file(const std::filesystem::path& folder,
                                                   int index,
                                                   std::span<const std::byte> bytes);
/// The whole shard; `corrupt` where it differs from its manifest's line.
[[nodiscard]] Result<std::vector<std::byte>> read_shard_file(const std::filesystem::path& folder,
                                                             const StoredShard& shard);
void remove_shard_file(const std::filesystem::path& folder, int index);

/// The commit. `corrupt` where a shard is not there, or not all of it: another node wrote it to
/// a folder of its own.
[[nodiscard]] Status write_manifest(const std::filesystem::path& folder, const Manifest& manifest);
[[nodiscard]] Result<Manifest> read_manifest(const std::filesystem::path& folder);

/// All committed sets of a level, newest step first. What cannot be read, the level's folder or a
/// manifest that is there, is left out, and `faults` names it.
[[nodiscard]] std::vector<SetFolder> list_sets(const std::filesystem::path& level,
                                               std::vector<std::string>& faults);
/// The same, with a warning for each fault.
[[nodiscard]] std::vector<SetFolder> list_sets(const std::filesystem::path& level);

/// The manifest goes first, so that no half-removed set can be taken for a checkpoint.
[[nodiscard]] Status remove_set(const std::filesystem::path& folder);

/// Removes what killed writers left half-written: sets without a manifest in which nothing has
/// changed for `age`. Never a committed set.
void sweep_leftovers(const std::filesystem::path& level, std::chrono::seconds age);

}  // namespace acb::train

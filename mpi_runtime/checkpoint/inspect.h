// SPDX-License-Identifier: Apache-2.0
// Checkpoints on disk seen from outside a run, by one process: for the tool and for tests.
#pragma once

#include "base/result.h"
#include "mpi_runtime/checkpoint/set_folder.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace acb::train {

/// The set in this folder, or the newest one of a level's folder. `not_found` if there is none.
[[nodiscard]] Result<SetFolder> find_set(const std::filesystem::path& path);

/// Reads all of a set: every shard is there and has its checksum, belongs to the set, and together
/// they hold every element of every tensor. `corrupt` names the first fault.
[[nodiscard]] Status verify_set(const SetFolder& set);

/// SHA-256, in hexadecimal, over the tensors of a section in order of their names; for each a line
/// "<name> <type> <extent>x<extent>...\n" and its elements, row-major, little-endian. It depends on
/// the values alone, not on how many ranks saved them. The set is verified first; `not_found`: no
/// such section. Holds one shard or one tensor in memory at a time.
[[nodiscard]] Result<std::string> section_sha256(const SetFolder& set, std::string_view section);

/// section_sha256 of "weights", for find_set's `path`.
[[nodiscard]] Result<std::string> weights_sha256(const std::filesystem::path& path);

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
// Keeps the cloud key in: no core files, no reading of this process's memory by others of its user.
// And one daemon at a time.
#pragma once

#include "base/files.h"
#include "base/result.h"

#include <filesystem>

namespace acb::cloud {

/// PR_SET_DUMPABLE 0 and RLIMIT_CORE 0.
[[nodiscard]] Status forbid_dumps();
/// Holds the lock file as long as the descriptor lives; `exists` where another daemon does.
[[nodiscard]] Result<UniqueFd> lock_single(const std::filesystem::path& path);

}  // namespace acb::cloud

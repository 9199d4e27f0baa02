// SPDX-License-Identifier: Apache-2.0
// One run at a time in a folder, whichever program it was begun with.
#pragma once

#include "base/files.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace acb::train {

/// Of a run that begins in this process: "<job>.<restart>-<random>" in Slurm, else
/// "local-<random>".
[[nodiscard]] std::string new_run_id();

/// Whether a run may go on where the holder's lock still stands: it is the same run, or an earlier
/// start of the same Slurm job. Slurm starts a job once at a time, and a host that was lost may
/// leave its lock on the file server for a while. Pure.
[[nodiscard]] bool may_pass(std::string_view holder, std::string_view run);

/// Makes the folder and locks <folder>/lock for as long as the descriptor is open. `invalid`, with
/// the holder: another run has it. Where the file system has no locks, nobody is kept out.
[[nodiscard]] Result<UniqueFd> lock_run_folder(const std::filesystem::path& folder,
                                               const std::string& run);

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
// Whether a folder is what it has to be: one and the same for all ranks. A path that each node
// resolves on a disk of its own would let every rank save its part, and no part ever meet another.
#pragma once

#include "base/result.h"
#include "mpi_runtime/comm/communicator.h"

#include <filesystem>
#include <string>

namespace acb::train {

/// Collective. Makes the folder `what`, and has every rank read what rank 0 writes there. The
/// error, the same on all ranks, names the first `node` that cannot write there (`invalid`,
/// `denied` or `unavailable`) or does not see it (`invalid`). A full disk is no error, and proves
/// nothing.
[[nodiscard]] Status check_shared_folder(Communicator& comm,
                                         std::string_view what,
                                         const std::filesystem::path& folder,
                                         const std::string& node);

}  // namespace acb::train

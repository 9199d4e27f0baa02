// SPDX-License-Identifier: Apache-2.0
// Slurm's host lists ("burst-[0-1,4]"), by libslurm's own parser. Needs no slurm.conf. Thread-safe.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace acb::cloud {

/// The names, in the order written; the empty text has none. `invalid` for what Slurm cannot read,
/// and for more than 65536 names.
[[nodiscard]] Result<std::vector<std::string>> expand_hosts(const std::string& text);
/// The shortest form: sorted, repeated names once. No names give the empty text.
[[nodiscard]] std::string compress_hosts(const std::vector<std::string>& hosts);

}  // namespace acb::cloud

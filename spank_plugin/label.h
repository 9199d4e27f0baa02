// SPDX-License-Identifier: Apache-2.0
// How the options travel: the SPANK plugin writes them into the job's control environment, the
// job_submit plugin reads them there and writes the record that the daemon trusts. Pure,
// thread-safe.
#pragma once

#include "spank_plugin/options.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace acb::spank {

/// Names in the job's control environment, and of the variables that the tasks see.
inline constexpr const char* kLabelBurst = "AUTOCLOUD_BURST";
inline constexpr const char* kLabelGpu = "AUTOCLOUD_GPU";
inline constexpr const char* kLabelMarket = "AUTOCLOUD_MARKET";
/// Slurm puts the control environment into the job's own under this prefix.
inline constexpr const char* kJobPrefix = "SLURM_SPANK_";

/// The label in "NAME=VALUE" entries; values unchecked, other names passed over. `invalid` where a
/// name comes twice, since whoever reads the job's environment later might see the other one.
[[nodiscard]] Result<OptionValues> read_label(const std::vector<std::string_view>& entries);

struct BurstRecord {
  int burst = 0;  ///< rented nodes
  int own = 0;    ///< own nodes
  std::string gpu;
  Market market = Market::spot;
};
/// "autocloud:v1 burst=2 own=2 gpu=a100-80gb market=spot", the job's admin comment.
[[nodiscard]] std::string format_record(const BurstRecord& record);

}  // namespace acb::spank

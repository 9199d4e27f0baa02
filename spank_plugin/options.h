// SPDX-License-Identifier: Apache-2.0
// The --autocloud-* options as values: the one parser behind the SPANK plugin, which refuses in
// sbatch, and the job_submit plugin, which trusts nothing that a client sends. Pure, thread-safe.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acb::spank {

inline constexpr std::string_view kBurstOption = "--autocloud-burst";
inline constexpr std::string_view kGpuOption = "--autocloud-gpu";
inline constexpr std::string_view kMarketOption = "--autocloud-market";

enum class Market { spot, on_demand };
[[nodiscard]] std::string_view name_of(Market market);  ///< "spot", "on-demand"
[[nodiscard]] Result<Market> parse_market(std::string_view what, std::string_view text);

inline constexpr int kMostNodes = 65000;  ///< below what Slurm's own 16-bit node counts hold

/// What a site allows.
struct Limits {
  int max_nodes = 1024;
  std::vector<std::string> gpu_types = {};  ///< none: any well-formed name
};

/// The options as given, the last value of each.
struct OptionValues {
  std::optional<std::string> burst = {};
  std::optional<std::string> gpu = {};
  std::optional<std::string> market = {};
};

/// The options as meant. What was not given is the site's default.
struct BurstOptions {
  int nodes = 0;  ///< rented nodes, 1 to Limits::max_nodes
  std::optional<std::string> gpu = {};
  std::optional<Market> market;
};

/// Nothing where no option was given. `invalid`, in one line that names the option, the value and
/// what is allowed, for a wrong value or an option that stands without --autocloud-burst.
[[nodiscard]] Result<std::optional<BurstOptions>> parse_options(const OptionValues& values,
                                                                const Limits& limits);

/// The arguments of the plugstack.conf line: max_nodes=64 gpu_types=a,b. An unknown one is
/// `invalid`.
[[nodiscard]] Result<Limits> parse_plugin_arguments(const std::vector<std::string_view>& arguments);

/// A GPU type is 1 to 64 of [a-z0-9.-], so that it fits into names, tags and the job's record.
[[nodiscard]] bool is_gpu_type(std::string_view text);

}  // namespace acb::spank

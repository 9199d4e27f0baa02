// SPDX-License-Identifier: Apache-2.0
// What a power hook hands to the daemon: one file in its inbox, whole or not at all.
#pragma once

#include "base/result.h"
#include "base/text.h"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace acb::cloud {

struct Order {
  std::string kind;   ///< resume, suspend or resumefail
  std::string hosts;  ///< a host list
  WallTime at;
};

/// The order as JSON text.
[[nodiscard]] std::string order_text(const Order& order);
/// "<unix nanoseconds>-<pid>-<kind>.json": sorted by name is sorted by time.
[[nodiscard]] std::string order_name(std::string_view kind, pid_t pid);
/// Writes the order into the inbox (made where it is missing) by renaming: on an error, nothing of
/// it is there. Blocks for the disk alone.
[[nodiscard]] Status write_order(const std::filesystem::path& inbox, const Order& order);

/// The hosts that are ours and the others, each as a host list, in the order given.
struct HostShares {
  std::string ours;
  std::string others;
};
[[nodiscard]] Result<HostShares> share_hosts(const std::string& hosts,
                                             const std::string& our_nodes);

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// What a job's nodes say when they no longer reach its batch host. The only way that leads from a
// user's process on a compute node to the controller is the job's comment, so that is where it
// stands, behind whatever the user has written there. Pure functions.
#pragma once

#include "base/text.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace acb {

struct LostHost {
  std::int64_t restart = 0;  ///< of the job: what an earlier start has lost means nothing
  std::string host;
  WallTime at{};  ///< to the second
  bool operator==(const LostHost&) const = default;
};

/// The comment with `lost` at its end, in place of an older one.
[[nodiscard]] std::string with_lost_host(std::string_view comment, const LostHost& lost);
/// nullopt for a comment that holds none.
[[nodiscard]] std::optional<LostHost> lost_host(std::string_view comment);

}  // namespace acb

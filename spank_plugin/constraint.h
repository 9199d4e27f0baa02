// SPDX-License-Identifier: Apache-2.0
// The job's constraint. Pure, thread-safe.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace acb::spank {

struct Halves {
  std::string own_feature;
  std::string cloud_feature;
  int own = 0;    ///< nodes
  int cloud = 0;  ///< nodes
};

/// "[onprem*2&cloud*4]", or "[(onprem&x)*2&(cloud&x)*4]" for a user's constraint x: Slurm passes
/// over every feature outside the brackets once there are counts (node_scheduler.c,
/// _get_req_features), so the user's own must stand in both halves. `invalid` for a constraint that
/// is more than names joined by & or a comma, or that names a half itself.
[[nodiscard]] Result<std::string> fold_constraint(std::string_view user, const Halves& halves);

}  // namespace acb::spank

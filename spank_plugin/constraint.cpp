// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/constraint.h"

#include "base/text.h"

#include <algorithm>

namespace acb::spank {

namespace {

tl::unexpected<Error> refuse(std::string_view constraint, const std::string& why) {
  return fail(ErrorCode::invalid,
              "--constraint: '" + std::string(constraint) + "': " + why +
                  "; write feature names joined by &, which then hold for own and rented nodes");
}

std::string half(const std::string& feature, const std::string& user, int count) {
  const std::string name = user.empty() ? feature : "(" + feature + "&" + user + ")";
  return name + "*" + std::to_string(count);
}

}  // namespace

Result<std::string> fold_constraint(std::string_view user, const Halves& halves) {
  if (const std::size_t place = user.find_first_of("[]*|()"); place != std::string_view::npos) {
    return refuse(
        user,
        std::string("a burst cannot be combined with '") + user[place] + "' in the constraint");
  }
  std::string names(user);
  std::replace(names.begin(), names.end(), ',', '&');
  for (const std::string& name : names.empty() ? std::vector<std::string>() : split(names, '&')) {
    if (name.empty() || name.find_first_of(" \t\r\n\"'\\") != std::string::npos) {
      return refuse(user, "'" + name + "' is no feature name");
    }
    if (name == halves.own_feature || name == halves.cloud_feature) {
      return refuse(user, "'" + name + "' is set by --autocloud-burst itself");
    }
  }
  return "[" + half(halves.own_feature, names, halves.own) + "&" +
         half(halves.cloud_feature, names, halves.cloud) + "]";
}

}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
// The record that job_submit writes into a burst's admin comment, which users cannot set:
// "autocloud:v1 burst=N own=M gpu=TYPE market=spot", and after " | " our words for people. Pure.
#pragma once

#include "cloudburst/provider/types.h"

#include <optional>
#include <string>
#include <string_view>

namespace acb::cloud {

struct Label {
  int burst = 0;
  int own = 0;
  std::string gpu_type;          ///< empty: the site's default
  std::optional<Market> market;  ///< nullopt: the site's default
  bool operator==(const Label&) const = default;
};

/// nullopt for the comment of a job that is not a burst.
[[nodiscard]] std::optional<Label> parse_label(std::string_view admin_comment);
/// The comment with `words` in place of what stood after the record; none: the record alone.
[[nodiscard]] std::string with_words(std::string_view admin_comment, std::string_view words);

}  // namespace acb::cloud

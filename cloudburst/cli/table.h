// SPDX-License-Identifier: Apache-2.0
// Aligned columns for people. Pure.
#pragma once

#include <string>
#include <vector>

namespace acb::cloud {

/// Rows of cells under a header, two spaces between columns, no space at line ends.
[[nodiscard]] std::string format_table(const std::vector<std::string>& header,
                                       const std::vector<std::vector<std::string>>& rows);

}  // namespace acb::cloud

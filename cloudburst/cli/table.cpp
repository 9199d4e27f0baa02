// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/cli/table.h"

#include <algorithm>
#include <cstddef>

namespace acb::cloud {

namespace {

void append_line(std::string& text,
                 const std::vector<std::string>& cells,
                 const std::vector<std::size_t>& widths) {
  const std::size_t start = text.size();
  for (std::size_t column = 0; column < cells.size(); ++column) {
    text += cells[column];
    text.append(widths[column] - cells[column].size() + 2, ' ');
  }
  while (text.size() > start && text.back() == ' ') {
    text.pop_back();
  }
  text += '\n';
}

}  // namespace

std::string format_table(const std::vector<std::string>& header,
                         const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  widths.reserve(header.size());
  for (const std::string& cell : header) {
    widths.push_back(cell.size());
  }
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  append_line(text, header, widths);
  for (const auto& row : rows) {
    append_line(text, row, widths);
  }
  return text;
}

}  // namespace acb::cloud

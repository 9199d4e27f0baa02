// SPDX-License-Identifier: Apache-2.0
// A file of JSON lines, each written whole. Thread-safe.
#pragma once

#include "base/files.h"
#include "base/json.h"

#include <filesystem>

namespace acb::sim {

class Journal {
 public:
  /// Starts the file anew.
  [[nodiscard]] static Result<Journal> open(const std::filesystem::path& path);
  void append(const Json& line);

 private:
  explicit Journal(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// The lines of such a file; one that was cut off in mid-write is left out.
[[nodiscard]] Result<std::vector<Json>> read_journal(const std::filesystem::path& path);

}  // namespace acb::sim

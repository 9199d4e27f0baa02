// SPDX-License-Identifier: Apache-2.0
// A secret in memory of its own: locked, left out of core files, and zeroed when done. There is no
// way to print or copy one by accident: it is move-only and has no formatter.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace acb::cloud {

class Secret {
 public:
  Secret() = default;
  Secret(Secret&& other) noexcept
      : page_(std::exchange(other.page_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Secret& operator=(Secret&& other) noexcept {
    std::swap(page_, other.page_);
    std::swap(size_, other.size_);
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret();

  /// At most kLimit bytes, spaces and line ends around them left out; `invalid` when empty or
  /// longer, or with a byte that cannot stand in a header.
  [[nodiscard]] static Result<Secret> copy_of(std::string_view what, std::string_view text);
  /// A regular file that belongs to this process's user and that nobody else can read or write;
  /// else `denied`. Its bytes go straight into the protected memory.
  [[nodiscard]] static Result<Secret> from_file(const std::filesystem::path& path);
  /// The variable's value, which is zeroed in place and removed from the environment; nullopt where
  /// it is absent or empty. Not thread-safe: call before any thread starts.
  [[nodiscard]] static Result<std::optional<Secret>> take_environment(const char* variable);

  /// The bytes themselves. Whoever copies them has to wipe the copy.
  [[nodiscard]] std::string_view reveal() const { return {page_, size_}; }
  [[nodiscard]] explicit operator bool() const { return size_ > 0; }

  static constexpr std::size_t kLimit = 4000;

 private:
  [[nodiscard]] static Result<Secret> allocate();
  /// Cuts off the space around what stands in the page, and checks the rest.
  [[nodiscard]] Status settle(std::string_view what, std::size_t filled);

  char* page_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace acb::cloud

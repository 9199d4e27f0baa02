// SPDX-License-Identifier: Apache-2.0
// Files and descriptors. Functions are thread-safe unless they act on the same path.
#pragma once

#include "base/result.h"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace acb {

/// Owns a file descriptor; -1 is none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// The whole file, at most `limit` bytes; a larger one is `invalid`.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::size_t limit = std::size_t{1} << 30);
/// Writes all of `bytes` to the descriptor, whatever write() takes at a time.
[[nodiscard]] Status write_all(int fd, std::string_view bytes);
/// Replaces `path` as a whole: a unique file beside it, fsync, rename, fsync of the folder. On an
/// error the old content stands and nothing is left behind.
[[nodiscard]] Status write_file(const std::filesystem::path& path,
                                std::string_view bytes,
                                mode_t mode = 0644);
[[nodiscard]] Status sync_folder(const std::filesystem::path& folder);
/// The folder and those above it that are missing; all are durable then, as far as this user may
/// read the folders that they are in.
[[nodiscard]] Status make_folders(const std::filesystem::path& folder);

}  // namespace acb

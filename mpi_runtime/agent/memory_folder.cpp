// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/agent/memory_folder.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace acb::train {

std::filesystem::path memory_folder(std::string_view autocloud_memory, std::string_view node) {
  return std::string(autocloud_memory) + "-" + std::string(node);
}

std::string memory_prefix(const std::filesystem::path& root, unsigned uid, std::string_view run) {
  return (root / ("autocloud-" + std::to_string(uid) + "-" + std::string(run))).string();
}

Result<MemoryFolder> MemoryFolder::create(const std::filesystem::path& path) {
  const std::string context = "agent: memory folder " + path.string();
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) {
      return fail_errno(context);
    }
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) {
      return fail_errno(context);
    }
    if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()) {
      return fail(ErrorCode::exists, context + ": it belongs to somebody else");
    }
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error || ::mkdir(path.c_str(), 0700) != 0) {
      return fail(ErrorCode::denied, context + ": an old one is in the way");
    }
  }
  return MemoryFolder(path);
}

MemoryFolder::MemoryFolder(MemoryFolder&& other) noexcept
    : path_(std::exchange(other.path_, std::filesystem::path())) {}

MemoryFolder& MemoryFolder::operator=(MemoryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

MemoryFolder::~MemoryFolder() {
  if (path_.empty()) {
    return;
  }
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  if (error) {
    spdlog::warn("agent: removing {}: {}", path_.string(), error.message());
  }
}

}  // namespace acb::train

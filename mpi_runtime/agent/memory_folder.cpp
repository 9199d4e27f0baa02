// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/agent/memory_folder.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>
#include <vector>

namespace acb::train {

namespace {

// Seconds: an agent that has made its folder a moment ago may not have locked it yet.
constexpr std::time_t kYoungest = 60;

}  // namespace

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
  UniqueFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail_errno(context);
  }
  return MemoryFolder(path, std::move(lock));
}

void sweep_memory_folders(const std::filesystem::path& root) {
  const std::string prefix = "autocloud-" + std::to_string(::geteuid()) + "-";
  std::error_code error;
  std::vector<std::filesystem::path> ours;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) {
      ours.push_back(entry->path());
    }
  }
  for (const auto& path : ours) {
    const UniqueFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    struct stat found {};
    if (lock && ::fstat(lock.get(), &found) == 0 && found.st_uid == ::geteuid() &&
        std::time(nullptr) - found.st_mtime > kYoungest &&
        ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      std::filesystem::remove_all(path, error);
    }
  }
}

MemoryFolder::MemoryFolder(MemoryFolder&& other) noexcept
    : path_(std::exchange(other.path_, std::filesystem::path())), lock_(std::move(other.lock_)) {}

MemoryFolder& MemoryFolder::operator=(MemoryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
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

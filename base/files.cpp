// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include "base/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace acb {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  fd_ = fd;
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return fail_errno(path.string());
  }
  std::string bytes;
  std::string buffer(std::size_t{1} << 16, '\0');
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got == 0) {
      return bytes;
    }
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail_errno(path.string());
    }
    bytes.append(buffer, 0, static_cast<std::size_t>(got));
    if (bytes.size() > limit) {
      return fail(ErrorCode::invalid,
                  path.string() + ": larger than " + std::to_string(limit) + " bytes");
    }
  }
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail_errno("write");
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

static Status write_synced(const std::filesystem::path& path, std::string_view bytes, mode_t mode) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) {
    return fail_errno(path.string());
  }
  // The umask must not decide who reads a secret or a shared checkpoint.
  if (::fchmod(fd.get(), mode) != 0) {
    return fail_errno(path.string());
  }
  if (auto written = write_all(fd.get(), bytes); !written) {
    return fail_with(path.string(), written.error());
  }
  if (::fsync(fd.get()) != 0) {
    return fail_errno(path.string());
  }
  return {};
}

Status write_file(const std::filesystem::path& path, std::string_view bytes, mode_t mode) {
  const std::filesystem::path temporary = path.string() + ".tmp-" + random_hex(8);
  if (auto written = write_synced(temporary, bytes, mode); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = fail_errno(path.string());
    ::unlink(temporary.c_str());
    return error;
  }
  return sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

Status sync_folder(const std::filesystem::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    return fail_errno(folder.string());
  }
  return {};
}

Status make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> parents;  // of what is missing
  for (auto missing = folder; !missing.empty() && !std::filesystem::exists(missing, error);
       missing = missing.parent_path()) {
    parents.push_back(missing.has_parent_path() ? missing.parent_path() : ".");
  }
  error.clear();
  std::filesystem::create_directories(folder, error);
  if (error) {
    const bool full = error == std::errc::no_space_on_device || error.value() == EDQUOT;
    return fail(error == std::errc::permission_denied ? ErrorCode::denied
                : full                                ? ErrorCode::exhausted
                                                      : ErrorCode::invalid,
                folder.string() + ": " + error.message());
  }
  for (const auto& parent : parents) {
    // One that may be written to and not read cannot be opened for this, and is no reason to fail.
    if (Status synced = sync_folder(parent); !synced && synced.error().code != ErrorCode::denied) {
      return synced;
    }
  }
  return {};
}

}  // namespace acb

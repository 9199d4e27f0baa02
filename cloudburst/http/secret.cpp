// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/http/secret.h"

#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace acb::cloud {

namespace {

constexpr std::size_t kPage = 4096;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

Status check_owner(const std::filesystem::path& path, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return fail_errno(path.string());
  }
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return fail(ErrorCode::denied,
                "key file: " + path.string() + ": must be a file that belongs to user " +
                    std::to_string(::geteuid()) +
                    " and that nobody else can read: chown it, then chmod 0600");
  }
  return {};
}

}  // namespace

Secret::~Secret() {
  if (page_ != nullptr) {
    ::explicit_bzero(page_, kPage);
    ::munmap(page_, kPage);
  }
}

Result<Secret> Secret::allocate() {
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return fail_errno("memory for a secret");
  }
  Secret secret;
  secret.page_ = static_cast<char*>(page);
  // The lock is refused where RLIMIT_MEMLOCK is 0; then swap is the admin's to encrypt.
  static_cast<void>(::mlock(page, kPage));
  if (::madvise(page, kPage, MADV_DONTDUMP) != 0) {
    return fail_errno("keeping a secret out of core files");
  }
  return secret;
}

Status Secret::settle(std::string_view what, std::size_t filled) {
  char* const end = page_ + filled;
  char* const first = std::find_if_not(page_, end, is_space);
  char* last = end;
  while (last > first && is_space(last[-1])) {
    --last;
  }
  size_ = static_cast<std::size_t>(last - first);
  std::memmove(page_, first, size_);
  ::explicit_bzero(page_ + size_, kPage - size_);
  if (size_ == 0 || size_ > kLimit) {
    return fail(ErrorCode::invalid,
                std::string(what) + ": must hold 1 to " + std::to_string(kLimit) + " bytes");
  }
  const bool printable =
      std::all_of(page_, page_ + size_, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!printable) {
    return fail(ErrorCode::invalid, std::string(what) + ": must be printable ASCII without spaces");
  }
  return {};
}

Result<Secret> Secret::copy_of(std::string_view what, std::string_view text) {
  ACB_TRY_ASSIGN(Secret secret, allocate());
  const std::size_t kept = std::min(text.size(), kPage);
  std::memcpy(secret.page_, text.data(), kept);
  ACB_TRY(secret.settle(what, kept));
  return secret;
}

Result<Secret> Secret::from_file(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    return fail_errno("key file: " + path.string());
  }
  ACB_TRY(check_owner(path, fd.get()));
  ACB_TRY_ASSIGN(Secret secret, allocate());
  std::size_t filled = 0;
  while (filled < kPage) {
    const ssize_t got = ::read(fd.get(), secret.page_ + filled, kPage - filled);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return fail_errno("key file: " + path.string());
    }
    if (got == 0) {
      break;
    }
    filled += static_cast<std::size_t>(got);
  }
  ACB_TRY(secret.settle("key file: " + path.string(), filled));
  return secret;
}

Result<std::optional<Secret>> Secret::take_environment(const char* variable) {
  char* value = std::getenv(variable);
  if (value == nullptr) {
    return std::optional<Secret>();
  }
  const std::size_t length = std::strlen(value);
  auto secret = copy_of(variable, {value, length});
  // In place, since /proc/PID/environ shows the original bytes whatever unsetenv does.
  ::explicit_bzero(value, length);
  ::unsetenv(variable);
  if (length == 0) {
    return std::optional<Secret>();
  }
  if (!secret) {
    return tl::unexpected<Error>(secret.error());
  }
  return std::optional<Secret>(std::move(*secret));
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/harden.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>

namespace acb::cloud {

Status forbid_dumps() {
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) {
    return fail_errno("autocloudd: RLIMIT_CORE");
  }
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return fail_errno("autocloudd: PR_SET_DUMPABLE");
  }
  return {};
}

Result<UniqueFd> lock_single(const std::filesystem::path& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) {
    return fail_errno("autocloudd: " + path.string());
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return fail(ErrorCode::exists,
                  "autocloudd: " + path.string() + ": another autocloudd is running");
    }
    return fail_errno("autocloudd: " + path.string());
  }
  return fd;
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// checkpoint_faults train FOLDER STEPS MODE N: two ranks load the newest step from FOLDER and save
// STEPS more, each printed once it is safe; at the N-th call that changes a file the process is
// killed (MODE kill) or the call fails for want of space (MODE full). checkpoint_faults check
// FOLDER: prints the newest step that three ranks load, after comparing every element.
//
// The calls are interposed: this program's own open, write, fsync... stand before libc's.
#include "tests/unit/mpi_runtime/checkpoint/training_state.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>

namespace {

std::atomic<long> calls_left = -1;  // negative: no fault is planned
std::atomic<bool> kill_then = false;

// True once: at the call that is to fail.
bool strikes() {
  if (calls_left < 0 || calls_left.fetch_sub(1) != 0) {
    return false;
  }
  if (kill_then) {
    ::kill(::getpid(), SIGKILL);
  }
  errno = ENOSPC;
  return true;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
ssize_t write(int fd, const void* bytes, size_t count) {
  static auto* const next = real<ssize_t(int, const void*, size_t)>("write");
  // A killed writer leaves half of what it was writing.
  if (fd > 2 && calls_left == 0 && count > 1) {
    static_cast<void>(next(fd, bytes, count / 2));
  }
  return fd > 2 && strikes() ? -1 : next(fd, bytes, count);
}
int fsync(int fd) {
  static auto* const next = real<int(int)>("fsync");
  return strikes() ? -1 : next(fd);
}
int posix_fallocate(int fd, off_t at, off_t bytes) {
  static auto* const next = real<int(int, off_t, off_t)>("posix_fallocate");
  return strikes() ? ENOSPC : next(fd, at, bytes);
}
int rename(const char* from, const char* to) noexcept {
  static auto* const next = real<int(const char*, const char*)>("rename");
  return strikes() ? -1 : next(from, to);
}
int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const next = real<int(const char*, mode_t)>("mkdir");
  return strikes() ? -1 : next(path, mode);
}
int unlink(const char* path) noexcept {
  static auto* const next = real<int(const char*)>("unlink");
  return calls_left == 0 && !kill_then ? next(path) : (strikes(), next(path));
}
int open(const char* path, int flags, ...) {
  static auto* const next = real<int(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return (flags & O_CREAT) != 0 && strikes() ? -1 : next(path, flags, mode);
}
}

namespace acb::train {
namespace {

CheckpointConfig config_for(const char* folder) {
  CheckpointConfig config = test_config();
  config.shared = folder;
  return config;
}

int train(const char* folder, int steps, const char* mode, long fault_at) {
  std::atomic<bool> failed = false;
  run_ranks(2, [&](Communicator& comm) {
    Trainer trainer(comm, config_for(folder));
    const std::int64_t from = std::max<std::int64_t>(trainer.load(), 0);
    if (comm.rank() == 0) {
      kill_then = std::string_view(mode) == "kill";
      calls_left = fault_at;
    }
    failed = failed || !barrier(comm);
    for (std::int64_t step = from + 1; step <= from + steps; ++step) {
      trainer.state.set(step);
      // A save that fails is told in a warning; what would be wrong is not to come back.
      const auto saved = trainer.checkpointer->save_now(step, SaveReason::leaving);
      if (!saved && saved.error().code == ErrorCode::unavailable) {
        failed = true;
      }
      if (saved && comm.rank() == 0) {
        std::printf("%lld\n", static_cast<long long>(step));
        std::fflush(stdout);
      }
    }
  });
  const bool struck = calls_left < 0;
  std::printf("%s\n", struck ? "struck" : "unharmed");
  return failed ? 1 : 0;
}

int check(const char* folder) {
  std::atomic<std::int64_t> step = -3;
  std::atomic<bool> same = true;
  run_ranks(3, [&](Communicator& comm) {
    Trainer trainer(comm, config_for(folder));
    const std::int64_t loaded = trainer.load();
    step = loaded;
    same = same && loaded >= 0 && trainer.state.is(loaded);
  });
  std::printf("%lld\n", static_cast<long long>(step));
  return same ? 0 : 1;
}

}  // namespace
}  // namespace acb::train

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("checkpoint_faults"));
  const std::string_view what = argc > 2 ? argv[1] : "";
  if (what == "train" && argc == 6) {
    return acb::train::train(argv[2], std::atoi(argv[3]), argv[4], std::atol(argv[5]));
  }
  if (what == "check" && argc == 3) {
    return acb::train::check(argv[2]);
  }
  std::fprintf(stderr,
               "usage: checkpoint_faults train FOLDER STEPS kill|full|none N\n"
               "       checkpoint_faults check FOLDER\n");
  return 2;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include "base/files.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace acb {

namespace {

constexpr std::size_t kOutputLimit = std::size_t{1} << 20;

class SpawnSetup {
 public:
  explicit SpawnSetup(const ProcessSpec& spec) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (spec.own_group) {
      flags |= POSIX_SPAWN_SETPGROUP;
      posix_spawnattr_setpgroup(&attributes_, 0);
    }
    posix_spawnattr_setflags(&attributes_, flags);
    if (spec.output_fd >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, spec.output_fd, STDOUT_FILENO);
      posix_spawn_file_actions_adddup2(&actions_, spec.output_fd, STDERR_FILENO);
    }
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

std::vector<std::string> merged_environment(const ProcessSpec& spec) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!spec.environment.contains(std::string(text.substr(0, text.find('='))))) {
      entries.emplace_back(text);
    }
  }
  for (const auto& [name, value] : spec.environment) {
    if (value) {
      entries.push_back(name + "=" + *value);
    }
  }
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

using Clock = std::chrono::steady_clock;

// Reads until the pipe closes; false once the deadline has passed.
bool drain(int fd, Clock::time_point deadline, std::string& output) {
  std::string buffer(4096, '\0');
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      return false;
    }
    pollfd poller{fd, POLLIN, 0};
    if (::poll(&poller, 1, static_cast<int>(std::min<long long>(left, 1000))) <= 0) {
      continue;
    }
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) {
      return true;
    }
    if (output.size() < kOutputLimit) {
      output.append(buffer, 0, static_cast<std::size_t>(got));
    }
  }
}

}  // namespace

Result<pid_t> spawn(const ProcessSpec& spec) {
  std::vector<std::string> arguments = spec.arguments;
  std::vector<std::string> environment = merged_environment(spec);
  const SpawnSetup setup(spec);
  pid_t pid = 0;
  const int status = posix_spawnp(&pid,
                                  arguments.front().c_str(),
                                  setup.actions(),
                                  setup.attributes(),
                                  pointers_to(arguments).data(),
                                  pointers_to(environment).data());
  if (status != 0) {
    errno = status;
    return fail_errno("starting " + arguments.front());
  }
  return pid;
}

Result<Finished> run_process(ProcessSpec spec, std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail_errno("pipe");
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  spec.output_fd = writer.get();
  spec.own_group = true;
  ACB_TRY_ASSIGN(const pid_t pid, spawn(spec));
  writer.reset();
  Finished finished;
  const bool ended = drain(reader.get(), deadline, finished.output);
  if (!ended) {
    ::kill(-pid, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    return fail(
        ErrorCode::timeout,
        spec.arguments.front() + ": no end within " + std::to_string(limit.count()) + " ms");
  }
  finished.exit_code = exit_code_of(status);
  return finished;
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace acb

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/agent/leftover.h"

#include "base/files.h"
#include "base/text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <system_error>
#include <thread>

namespace acb::train {

namespace {

constexpr std::size_t kEnvironmentLimit = std::size_t{4} << 20;
constexpr int kMostStarts = 1 << 30;

// The state letter follows the command's name, which may hold anything, brackets too.
bool is_zombie(const std::filesystem::path& process) {
  const auto stat = read_file(process / "stat", 4096);
  if (!stat) {
    return true;  // gone by now
  }
  const std::size_t end = stat->rfind(") ");
  return end != std::string::npos && end + 2 < stat->size() && (*stat)[end + 2] == 'Z';
}

}  // namespace

bool belongs_to(std::string_view environment, std::string_view run, int start) {
  bool of_run = false;
  bool of_start = false;
  for (const std::string& entry : split(environment, '\0')) {
    of_run = of_run || entry == "AUTOCLOUD_RUN=" + std::string(run);
    constexpr std::string_view kStart = "AUTOCLOUD_START=";
    if (entry.starts_with(kStart)) {
      const auto number =
          parse_integer("AUTOCLOUD_START", entry.substr(kStart.size()), 1, kMostStarts);
      of_start = number && *number <= start;
    }
  }
  return of_run && of_start;
}

std::vector<pid_t> leftover_processes(std::string_view run, int start) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto pid = parse_integer("pid", entry->path().filename().string(), 1, 1 << 30);
    struct stat status {};
    if (!pid || ::stat(entry->path().c_str(), &status) != 0 || status.st_uid != ::geteuid()) {
      continue;
    }
    const auto environment = read_file(entry->path() / "environ", kEnvironmentLimit);
    if (environment && belongs_to(*environment, run, start) && !is_zombie(entry->path())) {
      found.push_back(static_cast<pid_t>(*pid));
    }
  }
  return found;
}

bool end_leftovers(std::string_view run, int start, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  // A process in the middle of an exec has no environment to show for a moment: one look that finds
  // nothing is not enough.
  int empty_looks = 0;
  while (empty_looks < 2) {
    const std::vector<pid_t> pids = leftover_processes(run, start);
    empty_looks = pids.empty() ? empty_looks + 1 : 0;
    for (const pid_t pid : pids) {
      ::kill(pid, SIGKILL);
    }
    if (empty_looks < 2 && std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace acb::train

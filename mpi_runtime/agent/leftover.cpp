// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/agent/leftover.h"

#include "base/files.h"
#include "base/text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <set>
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

/// What the memory maps of this user's processes name below `root`.
std::set<std::string> mapped_files(const std::filesystem::path& root) {
  std::set<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto maps = read_file(entry->path() / "maps", kEnvironmentLimit);
    for (const std::string& line : split(maps.value_or(""), '\n')) {
      if (const std::size_t at = line.find(root.string() + "/"); at != std::string::npos) {
        found.insert(line.substr(at));
      }
    }
  }
  return found;
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

int remove_dead_segments(const std::filesystem::path& root,
                         std::string_view host,
                         std::chrono::seconds age) {
  const std::string prefix = "vader_segment." + std::string(host) + ".";
  std::vector<std::filesystem::path> segments;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status {};
    if (entry->path().filename().string().starts_with(prefix) &&
        ::lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == ::geteuid() && std::time(nullptr) - status.st_mtime >= age.count()) {
      segments.push_back(entry->path());
    }
  }
  if (segments.empty()) {
    return 0;
  }
  const std::set<std::string> mapped = mapped_files(root);
  int removed = 0;
  for (const auto& segment : segments) {
    // Should one still be wanted, its ranks have it mapped by now, and lose nothing but the name.
    if (!mapped.contains(segment.string()) && std::filesystem::remove(segment, error)) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/supervise/event_log.h"

#include "base/text.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <ctime>

namespace acb::train {

Result<EventLog> EventLog::open(const std::filesystem::path& run_folder) {
  const std::filesystem::path path = run_folder / "events.jsonl";
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) {
    return fail_errno("autocloud-run: " + path.string());
  }
  return EventLog(std::move(fd));
}

void EventLog::write(Json event) {
  event["at"] = format_time(wall_now());
  const auto written = write_all(fd_.get(), dump_json(event) + "\n");
  if (!written && !std::exchange(told_, true)) {
    say("events.jsonl: " + written.error().message);
  }
}

void EventLog::sync() {
  // Where it fails, write() tells of the disk; a pipe cannot be synced and needs not.
  [[maybe_unused]] const int synced = ::fsync(fd_.get());
}

void say(const std::string& text) {
  std::array<char, 16> clock{};
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::strftime(clock.data(), clock.size(), "%H:%M:%S", &local);
  // stderr may be closed or full; there is nobody left to tell.
  [[maybe_unused]] const auto written =
      write_all(STDERR_FILENO, std::string(clock.data()) + " autocloud-run: " + text + "\n");
}

}  // namespace acb::train

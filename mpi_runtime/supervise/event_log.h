// SPDX-License-Identifier: Apache-2.0
// What happened in a run: events.jsonl for programs (docs/events.md), stderr for people.
#pragma once

#include "base/files.h"
#include "base/json.h"
#include "base/result.h"

#include <filesystem>
#include <string>

namespace acb::train {

class EventLog {
 public:
  /// Appends to <run folder>/events.jsonl, so that a requeued job goes on in the same file.
  [[nodiscard]] static Result<EventLog> open(const std::filesystem::path& run_folder);
  /// One line with "at" added, in one write(). A full disk is told once and then borne: the run
  /// matters more than its log.
  void write(Json event);
  /// What was written outlives the host.
  void sync();

 private:
  explicit EventLog(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  bool told_ = false;
};

/// One line on stderr: "12:00:03 autocloud-run: text", in local time.
void say(const std::string& text);

}  // namespace acb::train

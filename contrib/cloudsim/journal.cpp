// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/journal.h"

#include "base/text.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

namespace acb::sim {

Result<Journal> Journal::open(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) {
    return fail_errno("opening " + path.string());
  }
  return Journal(std::move(fd));
}

void Journal::append(const Json& line) {
  // O_APPEND and one write per line keep lines of several threads apart.
  if (const auto done = write_all(fd_.get(), dump_json(line) + "\n"); !done) {
    spdlog::error("journal: {}", done.error().message);
  }
}

Result<std::vector<Json>> read_journal(const std::filesystem::path& path) {
  ACB_TRY_ASSIGN(const std::string text, read_file(path));
  std::vector<Json> lines;
  for (const std::string& line : split(text, '\n')) {
    if (auto json = parse_json(path.string(), line)) {
      lines.push_back(*std::move(json));
    }
  }
  return lines;
}

}  // namespace acb::sim

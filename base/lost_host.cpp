// SPDX-License-Identifier: Apache-2.0
#include "base/lost_host.h"

namespace acb {

namespace {

constexpr std::string_view kMark = "autocloud: start ";
constexpr std::string_view kVerb = "lost";
constexpr std::string_view kBreak = "; ";
constexpr std::int64_t kMostRestarts = 1 << 30;

}  // namespace

std::string with_lost_host(std::string_view comment, const LostHost& lost) {
  std::string_view text = comment.substr(0, comment.rfind(kMark));
  while (text.ends_with(kBreak)) {
    text.remove_suffix(kBreak.size());
  }
  const std::string when = format_time(lost.at).substr(0, 19) + "Z";
  return std::string(text) + std::string(text.empty() ? "" : kBreak) + std::string(kMark) +
         join({std::to_string(lost.restart), std::string(kVerb), lost.host, when}, " ");
}

std::optional<LostHost> lost_host(std::string_view comment) {
  const std::size_t at = comment.rfind(kMark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::vector<std::string> words = split(trim(comment.substr(at + kMark.size())), ' ');
  if (words.size() != 4 || words[1] != kVerb || words[2].empty()) {
    return std::nullopt;
  }
  const auto restart = parse_integer("start", words[0], 0, kMostRestarts);
  const auto when = parse_time("lost host", words[3]);
  if (!restart || !when) {
    return std::nullopt;
  }
  return LostHost{*restart, words[2], *when};
}

}  // namespace acb

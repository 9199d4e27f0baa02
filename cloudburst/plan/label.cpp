// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/plan/label.h"

#include "base/text.h"

namespace acb::cloud {

namespace {
constexpr std::string_view kMark = "autocloud:v1";
constexpr std::string_view kBar = " | ";
constexpr std::int64_t kMostNodes = 65536;

std::string_view record_of(std::string_view comment) {
  return comment.substr(0, comment.find(kBar));
}
}  // namespace

std::optional<Label> parse_label(std::string_view admin_comment) {
  const std::vector<std::string> words = split(trim(record_of(admin_comment)), ' ');
  if (words.front() != kMark) {
    return std::nullopt;
  }
  Label label;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      continue;
    }
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (name == "burst" || name == "own") {
      const auto number = parse_integer(name, value, 0, kMostNodes);
      if (!number) {
        return std::nullopt;
      }
      (name == "burst" ? label.burst : label.own) = static_cast<int>(*number);
    } else if (name == "gpu") {
      label.gpu_type = value;
    } else if (name == "market") {
      const auto market = parse_market(name, value);
      if (!market) {
        return std::nullopt;
      }
      label.market = *market;
    }
  }
  return label.burst > 0 ? std::optional(label) : std::nullopt;
}

std::string with_words(std::string_view admin_comment, std::string_view words) {
  std::string comment(record_of(admin_comment));
  if (!words.empty()) {
    comment += kBar;
    comment += words;
  }
  return comment;
}

}  // namespace acb::cloud

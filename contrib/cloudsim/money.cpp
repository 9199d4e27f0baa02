// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/money.h"

#include "base/text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>

namespace acb::sim {

namespace {

constexpr std::int64_t kMicro = 1'000'000;
constexpr std::size_t kPlaces = 6;

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
    return std::isdigit(letter) != 0;
  });
}

}  // namespace

Result<Money> parse_money(std::string_view what, std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point == std::string_view::npos ? "0" : text.substr(point + 1);
  if (!all_digits(whole) || !all_digits(part) || part.size() > kPlaces) {
    return fail(ErrorCode::invalid,
                fmt::format("{}: '{}': must be a decimal with at most six places", what, text));
  }
  ACB_TRY_ASSIGN(const std::int64_t units, parse_integer(what, whole, 0, kMicro));
  std::string padded(part);
  padded.resize(kPlaces, '0');
  ACB_TRY_ASSIGN(const std::int64_t micro, parse_integer(what, padded, 0, kMicro - 1));
  return Money{units * kMicro + micro};
}

std::string format_money(Money money) {
  std::string text = fmt::format("{}.{:06}", money.micro / kMicro, money.micro % kMicro);
  while (text.ends_with('0') && text[text.size() - 3] != '.') {
    text.pop_back();
  }
  return text;
}

}  // namespace acb::sim

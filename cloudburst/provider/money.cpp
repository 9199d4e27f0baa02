// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/money.h"

#include <fmt/format.h>

#include <algorithm>

namespace acb::cloud {

namespace {

constexpr std::int64_t kMicros = 1'000'000;
constexpr std::size_t kPlaces = 6;

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<Money> parse_money(std::string_view what, std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) {
    rest.remove_prefix(1);
  }
  const std::size_t point = rest.find('.');
  const std::string_view whole = rest.substr(0, point);
  const std::string_view places =
      point == std::string_view::npos ? std::string_view() : rest.substr(point + 1);
  const bool well_formed = !whole.empty() && whole.size() <= 12 && all_digits(whole) &&
                           all_digits(places) &&
                           (point == std::string_view::npos || !places.empty());
  if (!well_formed) {
    return fail(ErrorCode::invalid,
                fmt::format("{}: '{}': must be a decimal such as 2.49", what, text));
  }
  std::int64_t micros = 0;
  for (const char digit : whole) {
    micros = micros * 10 + (digit - '0');
  }
  for (std::size_t place = 0; place < kPlaces; ++place) {
    micros = micros * 10 + (place < places.size() ? places[place] - '0' : 0);
  }
  const std::string_view beyond =
      places.size() > kPlaces ? places.substr(kPlaces) : std::string_view();
  if (beyond.find_first_not_of('0') != std::string_view::npos) {
    ++micros;
  }
  return Money::from_micros(negative ? -micros : micros);
}

std::string format_money(Money money) {
  const std::int64_t micros = money.micros();
  const std::uint64_t size =
      micros < 0 ? 0 - static_cast<std::uint64_t>(micros) : static_cast<std::uint64_t>(micros);
  std::string text =
      fmt::format("{}{}.{:06}", micros < 0 ? "-" : "", size / kMicros, size % kMicros);
  const std::size_t shortest = text.size() - (kPlaces - 2);
  while (text.size() > shortest && text.back() == '0') {
    text.pop_back();
  }
  return text;
}

Money cost_of(Money price_per_hour, std::chrono::seconds time) {
  constexpr std::int64_t kHour = 3600;
  // Beyond what occurs, and far enough from the end of 64 bits for products with a part of an hour,
  // and for sums.
  constexpr std::int64_t kDearest = 1'000'000'000 * kMicros;
  constexpr std::int64_t kMost = 100 * kDearest;
  const std::int64_t price = std::clamp(price_per_hour.micros(), -kDearest, kDearest);
  const std::int64_t hours = time.count() / kHour;
  const std::int64_t seconds = time.count() % kHour;
  std::int64_t whole = 0;
  if (__builtin_mul_overflow(price, hours, &whole)) {
    return Money::from_micros((price < 0) == (hours < 0) ? kMost : -kMost);
  }
  return Money::from_micros(std::clamp(whole, -kMost, kMost) +
                            (price * seconds + kHour - 1) / kHour);
}

}  // namespace acb::cloud

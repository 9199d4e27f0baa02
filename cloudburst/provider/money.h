// SPDX-License-Identifier: Apache-2.0
// Amounts of money as whole millionths of a currency unit: sums and comparisons are exact, never
// binary fractions. All functions are pure and thread-safe.
#pragma once

#include "base/result.h"

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace acb::cloud {

class Money {
 public:
  constexpr Money() = default;
  [[nodiscard]] static constexpr Money from_micros(std::int64_t micros) {
    Money money;
    money.micros_ = micros;
    return money;
  }
  [[nodiscard]] constexpr std::int64_t micros() const { return micros_; }

  constexpr Money& operator+=(Money other) {
    micros_ += other.micros_;
    return *this;
  }
  constexpr Money& operator-=(Money other) {
    micros_ -= other.micros_;
    return *this;
  }
  [[nodiscard]] friend constexpr Money operator+(Money a, Money b) { return a += b; }
  [[nodiscard]] friend constexpr Money operator-(Money a, Money b) { return a -= b; }
  [[nodiscard]] friend constexpr Money operator*(Money a, std::int64_t times) {
    return from_micros(a.micros_ * times);
  }
  constexpr auto operator<=>(const Money&) const = default;

 private:
  std::int64_t micros_ = 0;
};

/// A decimal such as "2.49" or "12"; at most 12 digits before the point. Digits after the sixth
/// place round away from zero, so that a price is never taken for less than it is.
[[nodiscard]] Result<Money> parse_money(std::string_view what, std::string_view text);
/// At least two places, at most six: "2.49", "0.000001", "-3.50".
[[nodiscard]] std::string format_money(Money money);

/// What `time` costs at a price per hour, rounded up to the next millionth.
[[nodiscard]] Money cost_of(Money price_per_hour, std::chrono::seconds time);

}  // namespace acb::cloud

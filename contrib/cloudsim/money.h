// SPDX-License-Identifier: Apache-2.0
// Money as whole millionths of a unit of currency, so that sums are exact. Pure.
#pragma once

#include "base/result.h"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace acb::sim {

struct Money {
  std::int64_t micro = 0;

  friend auto operator<=>(Money, Money) = default;
  friend Money operator+(Money a, Money b) { return {a.micro + b.micro}; }
};

/// A decimal such as "2", "2.5" or "0.000001": not negative, at most six places, at most a million.
[[nodiscard]] Result<Money> parse_money(std::string_view what, std::string_view text);
/// At least two places, no more than needed: "2.50", "0.003333".
[[nodiscard]] std::string format_money(Money money);

}  // namespace acb::sim

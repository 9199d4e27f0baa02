// SPDX-License-Identifier: Apache-2.0
// What an instance costs. Pure.
#pragma once

#include "cloudsim/money.h"

#include <chrono>
#include <cstdint>

namespace acb::sim {

/// Fixed when an allocation is accepted; a later change of the offer's price does not matter.
struct BillTerms {
  Money price_per_hour;            ///< per instance
  std::int64_t granularity_s = 1;  ///< time is billed in whole multiples of this
  std::int64_t minimum_min = 0;    ///< of the offer
  std::int64_t duration_min = 0;   ///< of the request
};

/// max(duration_min, minimum_min, time used), rounded up to the granularity.
[[nodiscard]] std::int64_t billed_seconds(const BillTerms& terms, std::chrono::milliseconds used);
/// price × seconds / 3600, to the nearest millionth, halves up.
[[nodiscard]] Money cost_of(Money price_per_hour, std::int64_t seconds);

}  // namespace acb::sim

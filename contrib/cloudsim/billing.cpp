// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/billing.h"

#include <algorithm>

namespace acb::sim {

std::int64_t billed_seconds(const BillTerms& terms, std::chrono::milliseconds used) {
  const std::int64_t least = std::max(terms.minimum_min, terms.duration_min) * 60;
  const std::int64_t used_s = std::chrono::ceil<std::chrono::seconds>(used).count();
  const std::int64_t seconds = std::max({std::int64_t{0}, least, used_s});
  return (seconds + terms.granularity_s - 1) / terms.granularity_s * terms.granularity_s;
}

Money cost_of(Money price_per_hour, std::int64_t seconds) {
  // Split so that no product overflows; (q × 3600 + r) × s / 3600 = q × s + r × s / 3600.
  const std::int64_t whole = price_per_hour.micro / 3600;
  const std::int64_t rest = price_per_hour.micro % 3600;
  return {whole * seconds + (rest * seconds + 1800) / 3600};
}

}  // namespace acb::sim

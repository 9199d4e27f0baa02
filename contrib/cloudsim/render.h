// SPDX-License-Identifier: Apache-2.0
// The fleet as the JSON that the API answers with. Pure.
#pragma once

#include "base/json.h"
#include "cloudsim/fleet.h"

namespace acb::sim {

[[nodiscard]] Json allocation_json(const Allocation& allocation,
                                   const Scenario& scenario,
                                   WallTime now);
[[nodiscard]] Json job_json(const Allocation& job, WallTime now);
[[nodiscard]] Json offer_json(const OfferSpec& offer, const Fleet& fleet, WallTime now);
/// {prices: [{at, price_per_hour}]} up to `now`, from the price in force at `since` on.
[[nodiscard]] Json prices_json(const OfferSpec& offer,
                               const Fleet& fleet,
                               std::optional<WallTime> since,
                               WallTime now);
[[nodiscard]] Json account_json(const Fleet& fleet, WallTime now);
/// One line of the bill: {allocation_id, instance_id, status, from, to, billed_s,
/// price_per_hour, cost}; `to` is null while it runs.
[[nodiscard]] Json bill_line(const Allocation& allocation, const Instance& instance, WallTime now);
/// {error: {code, message, request_id, ...}}
[[nodiscard]] Json error_json(const ApiError& error, const std::string& request_id);

}  // namespace acb::sim

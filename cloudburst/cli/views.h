// SPDX-License-Identifier: Apache-2.0
// What the daemon answers, in words for people. Pure: each takes the daemon's JSON and whatever is
// absent in it shows as "-".
#pragma once

#include "base/json.h"
#include "base/text.h"

#include <string>

namespace acb::cloud {

/// Every burst of {"bursts": [...]}: its state, why it waits, when it is tried next, its nodes, its
/// cost. `now` makes "in 12 s" of a time.
[[nodiscard]] std::string status_view(const Json& reply, WallTime now);
/// {"nodes": [...]} as a table.
[[nodiscard]] std::string nodes_view(const Json& reply);
/// {"leases": [...]} as a table.
[[nodiscard]] std::string leases_view(const Json& reply);

/// Leases summed by job: {"jobs": [{"job", "user", "leases", "billed_s", "cost"}], "cost",
/// "currency"}. Amounts are exact; leases without a readable cost count as 0.
[[nodiscard]] Json cost_of_leases(const Json& reply);
[[nodiscard]] std::string cost_view(const Json& costs);

}  // namespace acb::cloud

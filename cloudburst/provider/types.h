// SPDX-License-Identifier: Apache-2.0
// What the cloud API speaks of, as values. Pure.
#pragma once

#include "base/json.h"
#include "base/text.h"
#include "cloudburst/provider/errors.h"
#include "cloudburst/provider/money.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace acb::cloud {

enum class Market { on_demand, spot };
/// As users and configuration write it: "on-demand", "spot".
[[nodiscard]] std::string_view name_of(Market market);
/// "on-demand" or "on_demand" or "spot"; else `invalid`.
[[nodiscard]] Result<Market> parse_market(std::string_view what, std::string_view text);

struct Offer {
  std::string offer_id;
  std::string gpu_type;
  std::string zone;
  Market market = Market::on_demand;
  Money price_per_hour;  ///< per instance
  std::string currency;
  int gpus_per_instance = 1;
  int minimum_min = 0;           ///< least minutes billed
  int granularity_s = 1;         ///< billed time is rounded up to a multiple of this
  std::optional<int> available;  ///< instances; nullopt where not told
  std::optional<int> notice_s;   ///< warning before a spot instance is taken
};

enum class InstanceStatus { booting, running, releasing, released, lost, unknown };
enum class AllocationStatus { pending, running, releasing, released, failed, unknown };
[[nodiscard]] std::string_view name_of(InstanceStatus status);
[[nodiscard]] std::string_view name_of(AllocationStatus status);

struct Instance {
  std::string instance_id;
  InstanceStatus status = InstanceStatus::unknown;
  std::optional<WallTime> billed_from;
  std::optional<WallTime> billed_until;  ///< nullopt while it runs
  std::int64_t billed_s = 0;
  Money cost;
  std::string address;  ///< empty until it has one
  int gpus = 0;
  std::optional<WallTime> reclaim_at;  ///< set once the cloud has said that it takes it back
};

struct Allocation {
  std::string allocation_id;
  AllocationStatus status = AllocationStatus::unknown;
  std::string gpu_type;
  Market market = Market::on_demand;
  std::string zone;
  std::string offer_id;
  Money price_per_hour;  ///< per instance, fixed when it was accepted
  std::string currency;
  int granularity_s = 1;
  int minimum_min = 0;
  std::map<std::string, std::string> tags;
  std::optional<CloudError> error;  ///< why it failed, of the class that its code has
  std::vector<Instance> instances;
  std::string request_id;  ///< of the call that told all this

  /// Whether the cloud has confirmed that nothing of it can cost money any more.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] Money cost() const;
};

struct AllocateRequest {
  std::string gpu_type;
  int gpus = 1;
  int duration_min = 1;  ///< least minutes wanted (and billed)
  std::string offer_id;  ///< empty: the cheapest that fits
  Market market = Market::on_demand;
  std::optional<Money> max_price_per_hour;
  std::string zone;
  std::string image;
  std::string user_data;
  std::map<std::string, std::string> tags;
};

/// The exact request body, the same bytes for the same request: stored before it is sent. `invalid`
/// where the API's own limits are broken (user data above 16384 bytes, ':' in a tag's key, counts
/// below 1).
[[nodiscard]] Result<std::string> allocate_body(const AllocateRequest& request);

/// One attempt to rent one node of one burst.
struct LeaseName {
  std::string cluster;
  std::uint32_t job = 0;
  std::uint32_t restart = 0;
  std::string node;
  std::uint32_t attempt = 0;
};
/// "cluster/job/restart/node/attempt"; `invalid` above the API's 128 characters.
[[nodiscard]] Result<std::string> idempotency_key(const LeaseName& lease);
/// The tags by which a lease is found again: cluster, job, restart, node, attempt, deadline.
[[nodiscard]] std::map<std::string, std::string> lease_tags(const LeaseName& lease,
                                                            WallTime deadline);

/// From the API's JSON; unknown members are ignored, absent ones keep their defaults. nullopt where
/// the part that makes it usable (its id; for an offer also its price) is absent or of another
/// type.
[[nodiscard]] std::optional<Allocation> allocation_from(const Json& json);
[[nodiscard]] std::optional<Offer> offer_from(const Json& json);

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// Offers, their prices over time, and which of them a request gets. Pure.
#pragma once

#include "cloudsim/api_error.h"
#include "cloudsim/money.h"
#include "cloudsim/random.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acb::sim {

enum class Market { on_demand, spot };
/// "on_demand" or "spot", as in the API.
[[nodiscard]] std::string_view name_of(Market market);

struct PricePoint {
  std::chrono::milliseconds after{};  ///< since the start of the server
  Money price;                        ///< per instance and hour, from then on
};

struct OfferSpec {
  std::string offer_id;
  std::string gpu_type;
  std::string zone = "zone-a";
  Market market = Market::on_demand;
  std::int64_t gpus_per_instance = 1;
  std::int64_t cpus = 8;
  std::int64_t memory_gib = 64;
  std::int64_t local_nvme_gib = 0;
  std::int64_t rdma_gbps = 0;
  std::int64_t granularity_s = 1;
  std::int64_t minimum_min = 1;
  std::int64_t capacity = 8;  ///< instances
  bool tell_available = true;
  std::int64_t notice_s = -1;  ///< -1: never any notice
  double notice_probability = 1;
  Distribution take_after_s;       ///< life of an instance until it is taken back; 0: never
  std::vector<PricePoint> prices;  ///< rising times, the first at 0
};

/// The price `elapsed` after the start.
[[nodiscard]] Money price_at(const OfferSpec& offer, std::chrono::milliseconds elapsed);

/// What a request asks of an offer.
struct Wish {
  std::string gpu_type;
  std::int64_t gpus = 1;
  std::optional<std::string> offer_id;
  std::optional<Market> market;  ///< absent: on-demand, unless an offer is pinned
  std::optional<std::string> zone;
  std::optional<Money> max_price;
  bool all_or_nothing = true;
};

struct Candidate {
  const OfferSpec* offer = nullptr;
  Money price;            ///< now
  std::int64_t free = 0;  ///< instances
};

struct Choice {
  const OfferSpec* offer = nullptr;
  Money price;
  std::int64_t instances = 0;
};

/// The cheapest offer that fits, or why none does: invalid_argument, insufficient_capacity or
/// price_exceeded (there is capacity, but all of it is dearer than max_price).
[[nodiscard]] ApiResult<Choice> choose(const Wish& wish, const std::vector<Candidate>& candidates);

}  // namespace acb::sim

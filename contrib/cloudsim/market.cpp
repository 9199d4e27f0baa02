// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/market.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace acb::sim {

namespace {

bool fits(const Wish& wish, const OfferSpec& offer) {
  if (offer.gpu_type != wish.gpu_type || (wish.zone && *wish.zone != offer.zone)) {
    return false;
  }
  if (wish.offer_id) {
    return *wish.offer_id == offer.offer_id && wish.market.value_or(offer.market) == offer.market;
  }
  return wish.market.value_or(Market::on_demand) == offer.market;
}

}  // namespace

std::string_view name_of(Market market) {
  return market == Market::spot ? "spot" : "on_demand";
}

Money price_at(const OfferSpec& offer, std::chrono::milliseconds elapsed) {
  Money price = offer.prices.front().price;
  for (const PricePoint& point : offer.prices) {
    if (point.after <= elapsed) {
      price = point.price;
    }
  }
  return price;
}

ApiResult<Choice> choose(const Wish& wish, const std::vector<Candidate>& candidates) {
  bool any_fits = false;
  bool any_divides = false;
  bool any_free = false;
  std::optional<Choice> best;
  for (const Candidate& candidate : candidates) {
    if (!fits(wish, *candidate.offer)) {
      continue;
    }
    any_fits = true;
    if (wish.gpus % candidate.offer->gpus_per_instance != 0) {
      continue;
    }
    any_divides = true;
    const std::int64_t wanted = wish.gpus / candidate.offer->gpus_per_instance;
    const std::int64_t got = std::min(wanted, candidate.free);
    if (got < (wish.all_or_nothing ? wanted : 1)) {
      continue;
    }
    any_free = true;
    if ((wish.max_price && candidate.price > *wish.max_price) ||
        (best && best->price <= candidate.price)) {
      continue;
    }
    best = Choice{candidate.offer, candidate.price, got};
  }
  if (best) {
    return *best;
  }
  if (!any_fits) {
    return bad_argument(
        fmt::format("gpu_type: '{}': no such offer in this market and zone", wish.gpu_type));
  }
  if (!any_divides) {
    return bad_argument(
        fmt::format("count: {}: must be a multiple of the offer's gpus_per_instance", wish.gpus));
  }
  if (!any_free) {
    return refuse(409,
                  "insufficient_capacity",
                  fmt::format("no capacity for {} × {}", wish.gpus, wish.gpu_type));
  }
  return refuse(409,
                "price_exceeded",
                fmt::format("every offer of {} costs more than {} an hour",
                            wish.gpu_type,
                            format_money(*wish.max_price)));
}

}  // namespace acb::sim

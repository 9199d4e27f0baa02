// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/scenario.h"

#include "cloudsim/settings_rows.h"

#include <array>
#include <utility>

namespace acb::sim {

namespace {

constexpr std::int64_t kMost = 1'000'000'000;
constexpr std::array kMarkets{std::pair{Market::on_demand, std::string_view("on_demand")},
                              std::pair{Market::spot, std::string_view("spot")}};

Result<PricePoint> parse_price_point(std::string_view what, const std::string& text) {
  const std::size_t colon = text.find(':');
  PricePoint point;
  if (colon != std::string::npos) {
    ACB_TRY_ASSIGN(const double seconds, parse_number(what, text.substr(0, colon), 0, 1e9));
    point.after = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  }
  ACB_TRY_ASSIGN(point.price,
                 parse_money(what, colon == std::string::npos ? text : text.substr(colon + 1)));
  return point;
}

Status set_prices(OfferSpec& offer, std::string_view key, const std::vector<std::string>& values) {
  offer.prices.clear();
  for (const std::string& text : values) {
    ACB_TRY_ASSIGN(const PricePoint point, parse_price_point(key, text));
    const bool in_order =
        offer.prices.empty() ? point.after.count() == 0 : point.after > offer.prices.back().after;
    if (!in_order) {
      return fail(ErrorCode::invalid,
                  std::string(key) + ": '" + text + "': times must rise and start at 0");
    }
    offer.prices.push_back(point);
  }
  return {};
}

std::vector<Setting<OfferSpec>> offer_settings() {
  using O = OfferSpec;
  return {text_setting("gpu_type", &O::gpu_type, "GPU model; required"),
          text_setting("zone", &O::zone, "where it is"),
          choice_setting("market", &O::market, kMarkets, "how it is sold"),
          integer_setting("gpus_per_instance", &O::gpus_per_instance, 1, 64, "GPUs of an instance"),
          integer_setting("cpus", &O::cpus, 1, kMost, "of an instance; shown"),
          integer_setting("memory_gib", &O::memory_gib, 1, kMost, "of an instance; shown"),
          integer_setting("local_nvme_gib", &O::local_nvme_gib, 0, kMost, "of an instance; shown"),
          integer_setting("rdma_gbps", &O::rdma_gbps, 0, kMost, "of an instance; shown"),
          integer_setting("granularity_s", &O::granularity_s, 1, 86400, "billing step, seconds"),
          integer_setting("minimum_min", &O::minimum_min, 0, 1440, "least billed, minutes"),
          integer_setting("capacity", &O::capacity, 0, kMost, "instances that there are"),
          bool_setting("tell_available", &O::tell_available, "whether offers say what is left"),
          integer_setting("notice_s", &O::notice_s, -1, kMost, "warning before a take; -1: none"),
          number_setting("notice_probability", &O::notice_probability, 0, 1, "that it comes"),
          distribution_setting("take_after_s", &O::take_after_s, "life until a take; 0: never"),
          {"price",
           "per instance and hour: \"1.20\", or over time [\"0:1.20\", \"600:2.00\"]; required",
           set_prices,
           nullptr}};
}

Status check_offer(std::string_view what, const OfferSpec& offer) {
  if (offer.gpu_type.empty() || offer.prices.empty()) {
    return fail(ErrorCode::invalid,
                std::string(what) + ": offers." + offer.offer_id + ": needs gpu_type and price");
  }
  return {};
}

std::vector<Setting<Scenario>> top_settings() {
  using S = Scenario;
  return {
      integer_setting("seed", &S::seed, 0, kMost, "the same seed and calls give the same run"),
      text_setting("currency", &S::currency, "shown"),
      distribution_setting("latency.call_s", &S::call_latency_s, "before every call"),
      distribution_setting(
          "latency.allocate_s", &S::allocate_latency_s, "while an allocate is carried out"),
      distribution_setting("boot.delay_s", &S::boot_s, "accepted until the command starts"),
      text_setting("boot.command", &S::boot_command, "boots an instance; empty: up by itself"),
      text_setting("boot.destroy", &S::destroy_command, "cuts an instance's power; empty: none"),
      distribution_setting("release.delay_s", &S::release_s, "release asked until gone, at least"),
      distribution_setting(
          "list.delay_s", &S::list_delay_s, "accepted until lists show it; counts up to 60"),
      {"quota.*",
       "GPUs of a type rented at a time; a type not named has no limit",
       [](S& scenario, std::string_view key, const std::vector<std::string>& values) -> Status {
         ACB_TRY_ASSIGN(const std::string text, single(key, values));
         ACB_TRY_ASSIGN(scenario.quota[std::string(key.substr(6))],
                        parse_integer(key, text, 0, kMost));
         return {};
       },
       nullptr}};
}

// Splits "offers.NAME.key" off into a table per name; false for other keys.
bool take_group(std::string_view group,
                const std::string& key,
                const std::vector<std::string>& values,
                std::map<std::string, RawSettings>& into) {
  if (!key.starts_with(group)) {
    return false;
  }
  const std::string rest = key.substr(group.size());
  const std::size_t dot = rest.find('.');
  into[rest.substr(0, dot)][dot == std::string::npos ? "" : rest.substr(dot + 1)] = values;
  return true;
}

template <typename Config>
void append_keys(std::string_view prefix,
                 const std::vector<Setting<Config>>& rows,
                 std::vector<Flag>& into) {
  for (Flag flag : flags_of(rows)) {
    flag.key.insert(0, prefix);
    into.push_back(std::move(flag));
  }
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view what, const RawSettings& raw) {
  RawSettings top;
  std::map<std::string, RawSettings> offers;
  std::map<std::string, RawSettings> faults;
  for (const auto& [key, values] : raw) {
    if (!take_group("offers.", key, values, offers) &&
        !take_group("faults.", key, values, faults)) {
      top[key] = values;
    }
  }
  Scenario scenario;
  ACB_TRY(apply_settings(scenario, top_settings(), top, what));
  for (const auto& [name, table] : offers) {
    OfferSpec& offer = scenario.offers.emplace_back();
    offer.offer_id = name;
    ACB_TRY(apply_settings(offer, offer_settings(), table, std::string(what) + ": offers." + name));
    ACB_TRY(check_offer(what, offer));
  }
  for (const auto& [name, table] : faults) {
    FaultRule& rule = scenario.faults.emplace_back();
    rule.name = name;
    ACB_TRY(apply_settings(rule, fault_settings(), table, std::string(what) + ": faults." + name));
  }
  return scenario;
}

std::vector<Flag> scenario_keys() {
  std::vector<Flag> keys;
  append_keys("", top_settings(), keys);
  append_keys("offers.NAME.", offer_settings(), keys);
  append_keys("faults.NAME.", fault_settings(), keys);
  return keys;
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace acb::cloud {

namespace {

constexpr std::size_t kLongestUserData = 16384;
constexpr std::size_t kLongestKey = 128;

constexpr std::array<std::pair<std::string_view, InstanceStatus>, 5> kInstanceStatuses{{
    {"booting", InstanceStatus::booting},
    {"running", InstanceStatus::running},
    {"releasing", InstanceStatus::releasing},
    {"released", InstanceStatus::released},
    {"lost", InstanceStatus::lost},
}};
constexpr std::array<std::pair<std::string_view, AllocationStatus>, 5> kAllocationStatuses{{
    {"pending", AllocationStatus::pending},
    {"running", AllocationStatus::running},
    {"releasing", AllocationStatus::releasing},
    {"released", AllocationStatus::released},
    {"failed", AllocationStatus::failed},
}};

template <typename Table>
auto status_in(const Table& table, std::string_view name) {
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const auto& r) { return r.first == name; });
  using Status = decltype(row->second);
  return row == table.end() ? Status::unknown : row->second;
}
template <typename Table, typename Status>
std::string_view name_in(const Table& table, Status status) {
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const auto& r) { return r.second == status; });
  return row == table.end() ? std::string_view("unknown") : row->first;
}

std::string text_of(const Json& json, std::string_view key) {
  return json_or<std::string>(json, key, "");
}

std::optional<Money> money_of(const Json& json, std::string_view key) {
  const auto money = parse_money(key, text_of(json, key));
  return money ? std::optional<Money>(*money) : std::nullopt;
}

std::optional<WallTime> time_of(const Json& json, std::string_view key) {
  const auto time = parse_time(key, text_of(json, key));
  return time ? std::optional<WallTime>(*time) : std::nullopt;
}

std::optional<int> number_of(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) {
    return std::nullopt;
  }
  return found->get<int>();
}

Market market_of(const Json& json) {
  return parse_market("market", text_of(json, "market")).value_or(Market::on_demand);
}

Instance instance_from(const Json& json) {
  Instance instance;
  instance.instance_id = text_of(json, "instance_id");
  instance.status = status_in(kInstanceStatuses, text_of(json, "status"));
  instance.billed_from = time_of(json, "billed_from");
  instance.billed_until = time_of(json, "billed_until");
  instance.billed_s = json_or<std::int64_t>(json, "billed_s", 0);
  instance.cost = money_of(json, "cost").value_or(Money());
  instance.address = text_of(json, "address");
  instance.gpus = json_or<int>(json, "gpus", 0);
  const Json notice = json.value("interruption", Json());
  if (notice.is_object()) {
    // A notice without a time that can be read is still one: at once.
    instance.reclaim_at = time_of(notice, "at").value_or(WallTime());
  }
  return instance;
}

std::optional<CloudError> failure_from(const Json& allocation) {
  Json error = allocation.value("error", Json());
  if (!error.is_object()) {
    return std::nullopt;
  }
  if (error.contains("error")) {
    return classify(500, dump_json(error), "", "");
  }
  return classify(500, dump_json(Json{{"error", std::move(error)}}), "", "");
}

}  // namespace

std::string_view name_of(Market market) {
  return market == Market::spot ? "spot" : "on-demand";
}

Result<Market> parse_market(std::string_view what, std::string_view text) {
  if (text == "spot") {
    return Market::spot;
  }
  if (text == "on-demand" || text == "on_demand") {
    return Market::on_demand;
  }
  return fail(ErrorCode::invalid, fmt::format("{}: '{}': must be spot or on-demand", what, text));
}

std::string_view name_of(InstanceStatus status) {
  return name_in(kInstanceStatuses, status);
}
std::string_view name_of(AllocationStatus status) {
  return name_in(kAllocationStatuses, status);
}

bool Allocation::is_over() const {
  return status == AllocationStatus::released || status == AllocationStatus::failed;
}

Money Allocation::cost() const {
  Money sum;
  for (const Instance& instance : instances) {
    sum += instance.cost;
  }
  return sum;
}

Result<std::string> allocate_body(const AllocateRequest& request) {
  if (request.gpu_type.empty() || request.gpus < 1 || request.duration_min < 1) {
    return fail(ErrorCode::invalid,
                fmt::format("allocate: gpu_type '{}', {} GPUs, {} min: needs a type, and numbers "
                            "from 1 up",
                            request.gpu_type,
                            request.gpus,
                            request.duration_min));
  }
  if (request.user_data.size() > kLongestUserData) {
    return fail(ErrorCode::invalid,
                fmt::format("allocate: user data: {} bytes: the cloud takes at most {}",
                            request.user_data.size(),
                            kLongestUserData));
  }
  for (const auto& [key, value] : request.tags) {
    if (key.empty() || key.find(':') != std::string::npos) {
      return fail(ErrorCode::invalid, "allocate: tag '" + key + "': must not hold ':'");
    }
  }
  // nlohmann::json keeps members sorted by name, which makes the bytes a function of the request.
  Json body{{"gpu_type", request.gpu_type},
            {"count", request.gpus},
            {"duration_min", request.duration_min},
            {"market", request.market == Market::spot ? "spot" : "on_demand"},
            {"all_or_nothing", true},
            {"tags", request.tags}};
  const auto set_if_given = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      body[name] = value;
    }
  };
  set_if_given("offer_id", request.offer_id);
  set_if_given("zone", request.zone);
  set_if_given("image", request.image);
  set_if_given("user_data", request.user_data);
  if (request.max_price_per_hour) {
    body["max_price_per_hour"] = format_money(*request.max_price_per_hour);
  }
  return dump_json(body);
}

Result<std::string> idempotency_key(const LeaseName& lease) {
  std::string key = fmt::format(
      "{}/{}/{}/{}/{}", lease.cluster, lease.job, lease.restart, lease.node, lease.attempt);
  if (key.size() > kLongestKey) {
    return fail(ErrorCode::invalid,
                fmt::format("idempotency key: '{}': longer than {} characters: give the cluster a "
                            "shorter name in autocloud.toml",
                            key,
                            kLongestKey));
  }
  return key;
}

std::map<std::string, std::string> lease_tags(const LeaseName& lease, WallTime deadline) {
  return {{"cluster", lease.cluster},
          {"job", std::to_string(lease.job)},
          {"restart", std::to_string(lease.restart)},
          {"node", lease.node},
          {"attempt", std::to_string(lease.attempt)},
          {"deadline", format_time(deadline)}};
}

std::optional<Allocation> allocation_from(const Json& json) {
  Allocation allocation;
  allocation.allocation_id = text_of(json, "allocation_id");
  if (allocation.allocation_id.empty()) {
    return std::nullopt;
  }
  allocation.status = status_in(kAllocationStatuses, text_of(json, "status"));
  allocation.gpu_type = text_of(json, "gpu_type");
  allocation.market = market_of(json);
  allocation.zone = text_of(json, "zone");
  allocation.offer_id = text_of(json, "offer_id");
  allocation.price_per_hour = money_of(json, "price_per_hour").value_or(Money());
  allocation.currency = text_of(json, "currency");
  allocation.granularity_s = json_or<int>(json, "granularity_s", 1);
  allocation.minimum_min = json_or<int>(json, "minimum_min", 0);
  const Json tags = json.value("tags", Json::object());
  for (const auto& [key, value] : tags.items()) {
    if (value.is_string()) {
      allocation.tags[key] = value.get<std::string>();
    }
  }
  allocation.error = failure_from(json);
  const Json instances = json.value("instances", Json::array());
  if (instances.is_array()) {
    for (const Json& instance : instances) {
      if (instance.is_object()) {
        allocation.instances.push_back(instance_from(instance));
      }
    }
  }
  return allocation;
}

std::optional<Offer> offer_from(const Json& json) {
  Offer offer;
  offer.offer_id = text_of(json, "offer_id");
  const std::optional<Money> price =
      json.is_object() ? money_of(json, "price_per_hour") : std::nullopt;
  if (offer.offer_id.empty() || !price || *price < Money()) {
    return std::nullopt;
  }
  offer.gpu_type = text_of(json, "gpu_type");
  offer.zone = text_of(json, "zone");
  offer.market = market_of(json);
  offer.price_per_hour = *price;
  offer.currency = text_of(json, "currency");
  offer.gpus_per_instance = std::max(1, json_or<int>(json, "gpus_per_instance", 1));
  offer.minimum_min = json_or<int>(json, "minimum_min", 0);
  offer.granularity_s = std::max(1, json_or<int>(json, "granularity_s", 1));
  offer.available = number_of(json, "available");
  offer.notice_s = number_of(json, "notice_s");
  return offer;
}

}  // namespace acb::cloud

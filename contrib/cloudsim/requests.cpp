// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/requests.h"

#include <spdlog/fmt/fmt.h>

#include <optional>

// Passes the ApiError of a result up, or binds its value.
#define ACB_SIM_ASSIGN(target, expression)                  \
  do {                                                      \
    auto acb_parsed = (expression);                         \
    if (!acb_parsed) {                                      \
      return tl::unexpected(std::move(acb_parsed).error()); \
    }                                                       \
    (target) = *std::move(acb_parsed);                      \
  } while (false)

namespace acb::sim {

namespace {

constexpr std::size_t kUserDataLimit = 16384;
constexpr std::int64_t kMostGpus = 100'000;
constexpr std::int64_t kMostMinutes = 527'040;  // a leap year

ApiResult<std::optional<std::string>> optional_text(const Json& body, std::string_view field) {
  const auto found = body.find(field);
  if (found == body.end() || found->is_null()) {
    return std::nullopt;
  }
  if (!found->is_string()) {
    return bad_argument(fmt::format("{}: {}: must be a text", field, dump_json(*found)));
  }
  return found->get<std::string>();
}

ApiResult<std::string> required_text(const Json& body, std::string_view field) {
  std::optional<std::string> text;
  ACB_SIM_ASSIGN(text, optional_text(body, field));
  if (!text || text->empty()) {
    return bad_argument(fmt::format("{}: is required", field));
  }
  return *text;
}

struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::optional<std::int64_t> fallback = std::nullopt;
};

ApiResult<std::int64_t> integer(const Json& body, std::string_view field, const Range& range) {
  const auto found = body.find(field);
  if (found == body.end() || found->is_null()) {
    if (range.fallback) {
      return *range.fallback;
    }
    return bad_argument(fmt::format("{}: is required", field));
  }
  const bool in_range = found->is_number_integer() && found->get<std::int64_t>() >= range.least &&
                        found->get<std::int64_t>() <= range.most;
  if (!in_range) {
    return bad_argument(
        fmt::format("{}: {}: must be {} to {}", field, dump_json(*found), range.least, range.most));
  }
  return found->get<std::int64_t>();
}

ApiResult<std::optional<Market>> market_of(const Json& body) {
  std::optional<std::string> text;
  ACB_SIM_ASSIGN(text, optional_text(body, "market"));
  if (!text) {
    return std::nullopt;
  }
  for (const Market market : {Market::on_demand, Market::spot}) {
    if (*text == name_of(market)) {
      return market;
    }
  }
  return bad_argument(fmt::format("market: '{}': must be on_demand or spot", *text));
}

ApiResult<bool> boolean(const Json& body, std::string_view field, bool fallback) {
  const auto found = body.find(field);
  if (found == body.end() || found->is_null()) {
    return fallback;
  }
  if (!found->is_boolean()) {
    return bad_argument(fmt::format("{}: {}: must be true or false", field, dump_json(*found)));
  }
  return found->get<bool>();
}

ApiResult<void> must_be_object(const Json& body) {
  if (!body.is_object()) {
    return bad_argument("body: must be a JSON object");
  }
  return {};
}

ApiResult<std::optional<Money>> max_price_of(const Json& body) {
  std::optional<std::string> text;
  ACB_SIM_ASSIGN(text, optional_text(body, "max_price_per_hour"));
  if (!text) {
    return std::nullopt;
  }
  const auto price = parse_money("max_price_per_hour", *text);
  if (!price) {
    return bad_argument(price.error().message);
  }
  return *price;
}

}  // namespace

ApiResult<std::map<std::string, std::string>> parse_tags(const Json& body) {
  std::map<std::string, std::string> tags;
  const auto found = body.find("tags");
  if (found == body.end() || found->is_null()) {
    return tags;
  }
  if (!found->is_object()) {
    return bad_argument("tags: must be an object of texts");
  }
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string() || key.empty() || key.find(':') != std::string::npos) {
      return bad_argument(fmt::format(
          "tags: '{}': must be a text under a key that is not empty and has no ':'", key));
    }
    tags[key] = value.get<std::string>();
  }
  return tags;
}

ApiResult<AllocateRequest> parse_allocate(const Json& body) {
  if (auto object = must_be_object(body); !object) {
    return tl::unexpected(object.error());
  }
  AllocateRequest request;
  ACB_SIM_ASSIGN(request.wish.gpu_type, required_text(body, "gpu_type"));
  ACB_SIM_ASSIGN(request.wish.gpus, integer(body, "count", {1, kMostGpus}));
  ACB_SIM_ASSIGN(request.duration_min, integer(body, "duration_min", {0, kMostMinutes}));
  ACB_SIM_ASSIGN(request.wish.offer_id, optional_text(body, "offer_id"));
  ACB_SIM_ASSIGN(request.wish.market, market_of(body));
  ACB_SIM_ASSIGN(request.wish.max_price, max_price_of(body));
  ACB_SIM_ASSIGN(request.wish.zone, optional_text(body, "zone"));
  ACB_SIM_ASSIGN(request.wish.all_or_nothing, boolean(body, "all_or_nothing", true));
  std::optional<std::string> text;
  ACB_SIM_ASSIGN(text, optional_text(body, "image"));
  ACB_SIM_ASSIGN(text, optional_text(body, "user_data"));
  request.user_data = text.value_or("");
  if (request.user_data.size() > kUserDataLimit) {
    return bad_argument(fmt::format(
        "user_data: {} bytes: must be at most {}", request.user_data.size(), kUserDataLimit));
  }
  ACB_SIM_ASSIGN(request.tags, parse_tags(body));
  return request;
}

ApiResult<JobRequest> parse_job(const Json& body) {
  if (auto object = must_be_object(body); !object) {
    return tl::unexpected(object.error());
  }
  JobRequest request;
  ACB_SIM_ASSIGN(request.name, required_text(body, "name"));
  ACB_SIM_ASSIGN(request.image, required_text(body, "image"));
  ACB_SIM_ASSIGN(request.command, required_text(body, "command"));
  ACB_SIM_ASSIGN(request.wish.gpu_type, required_text(body, "gpu_type"));
  ACB_SIM_ASSIGN(request.wish.gpus, integer(body, "gpu_count", {1, kMostGpus}));
  ACB_SIM_ASSIGN(request.wish.market, market_of(body));
  ACB_SIM_ASSIGN(request.max_duration_min,
                 integer(body, "max_duration_min", {1, kMostMinutes, std::int64_t{0}}));
  std::optional<std::string> memory;
  ACB_SIM_ASSIGN(memory, optional_text(body, "memory"));
  ACB_SIM_ASSIGN(request.tags, parse_tags(body));
  return request;
}

ApiResult<std::vector<std::string>> parse_instance_ids(const Json& body) {
  std::vector<std::string> ids;
  const auto found = body.find("instance_ids");
  if (found == body.end() || found->is_null()) {
    return ids;
  }
  // An empty list names nothing; to take it for "all" would give back what nobody meant to.
  if (!found->is_array() || found->empty()) {
    return bad_argument("instance_ids: must be a list of at least one, or absent for all");
  }
  for (const Json& id : *found) {
    if (!id.is_string()) {
      return bad_argument(fmt::format("instance_ids: {}: must be a text", dump_json(id)));
    }
    ids.push_back(id.get<std::string>());
  }
  return ids;
}

ApiResult<std::pair<std::string, std::string>> parse_tag(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return bad_argument(fmt::format("tag: '{}': must be key:value", text));
  }
  return std::pair{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
// What all calls have in common: routes, the key, latency, faults, the log.
#include "cloudsim/api.h"

#include "cloudsim/render.h"

#include <spdlog/fmt/fmt.h>

#include <array>

namespace acb::sim {

struct Api::Route {
  std::string_view method;
  std::string_view prefix;
  std::string_view suffix;  ///< after the name; the prefix alone is the path where `named` is no
  enum class Named { no, segment, rest } named;
  ApiResult<ApiReply> (Api::*call)(const Context&);

  /// The name in the path, if the route is the path's.
  [[nodiscard]] std::optional<std::string> match(const ApiRequest& request) const {
    const std::string_view path = request.path;
    if (request.method != method || !path.starts_with(prefix) ||
        path.size() < prefix.size() + suffix.size() || !path.ends_with(suffix)) {
      return std::nullopt;
    }
    std::string name(path.substr(prefix.size(), path.size() - prefix.size() - suffix.size()));
    const bool fits = named == Named::no ? name.empty()
                                         : !name.empty() && (named == Named::rest ||
                                                             name.find('/') == std::string::npos);
    return fits ? std::optional(std::move(name)) : std::nullopt;
  }
};

namespace {

constexpr std::string_view kBearer = "Bearer ";

ApiReply error_reply(const ApiError& error, const std::string& request_id) {
  ApiReply reply;
  reply.status = error.status;
  reply.body = dump_json(error_json(error, request_id));
  if (error.retry_after_s) {
    reply.headers["Retry-After"] = std::to_string(*error.retry_after_s);
  }
  return reply;
}

ApiError error_of(const FaultRule& rule) {
  ApiError error{static_cast<int>(rule.status), rule.code, rule.message};
  if (rule.retry_after_s >= 0) {
    error.retry_after_s = rule.retry_after_s;
  }
  return error;
}

/// The key that the call is made under, or asks for.
std::string_view key_of(const ApiRequest& request) {
  const auto asked = request.query.find("idempotency_key");
  return asked == request.query.end() ? request.idempotency_key : asked->second;
}

bool is_before(FaultKind kind) {
  return kind == FaultKind::error || kind == FaultKind::drop;
}

}  // namespace

ApiResult<ApiReply> Api::dispatch(const ApiRequest& request) {
  using Named = Route::Named;
  static constexpr std::array kRoutes{
      Route{"POST", "/v1/gpu/allocate", "", Named::no, &Api::allocate},
      Route{"GET", "/v1/gpu/allocations", "", Named::no, &Api::list_allocations},
      Route{"GET", "/v1/gpu/allocations/", "", Named::segment, &Api::get_allocation},
      Route{"PATCH", "/v1/gpu/allocations/", "", Named::segment, &Api::patch_allocation},
      Route{"POST", "/v1/gpu/allocations/", "/release", Named::segment, &Api::release_allocation},
      Route{"GET", "/v1/gpu/offers", "", Named::no, &Api::list_offers},
      Route{"GET", "/v1/gpu/prices", "", Named::no, &Api::list_prices},
      Route{"GET", "/v1/account", "", Named::no, &Api::account},
      Route{"POST", "/v1/jobs", "", Named::no, &Api::create_job},
      Route{"GET", "/v1/jobs", "", Named::no, &Api::list_jobs},
      Route{"GET", "/v1/jobs/", "", Named::segment, &Api::get_job},
      Route{"DELETE", "/v1/jobs/", "", Named::segment, &Api::cancel_job},
      Route{"GET", "/v1/objects", "", Named::no, &Api::list_objects},
      Route{"PUT", "/v1/objects/", "", Named::rest, &Api::put_object},
      Route{"GET", "/v1/objects/", "", Named::rest, &Api::get_object},
      Route{"DELETE", "/v1/objects/", "", Named::rest, &Api::delete_object}};
  for (const Route& route : kRoutes) {
    if (auto id = route.match(request)) {
      return (this->*route.call)({request, *std::move(id)});
    }
  }
  return not_found(request.method + " " + request.path + ": no such call");
}

ApiReply Api::answer(const ApiRequest& request,
                     const std::string& request_id,
                     std::string& fault_name) {
  const std::string_view authorization = request.authorization;
  if (!authorization.starts_with(kBearer) || authorization.size() == kBearer.size() ||
      (!key_.empty() && authorization.substr(kBearer.size()) != key_)) {
    return error_reply({401, "unauthorized", "the bearer key is missing or wrong"}, request_id);
  }
  const auto fault = simulator_.with([&](Fleet&, FaultPlan& plan, WallTime now) {
    return plan.on_call(request.method, request.path, key_of(request), now);
  });
  fault_name = fault ? fault->name : "";
  if (fault && is_before(fault->kind)) {
    ApiReply reply = error_reply(error_of(*fault), request_id);
    if (fault->kind == FaultKind::drop) {
      reply.delivery = ApiReply::Delivery::connection_closed;
    }
    return reply;
  }
  auto done = dispatch(request);
  ApiReply reply = done ? *std::move(done) : error_reply(done.error(), request_id);
  if (!fault) {
    return reply;
  }
  switch (fault->kind) {
    case FaultKind::error_after:
      return error_reply(error_of(*fault), request_id);
    case FaultKind::lose_reply:
      reply.delivery = ApiReply::Delivery::connection_closed;
      break;
    case FaultKind::garble:
      reply.delivery = ApiReply::Delivery::cut_in_half;
      break;
    case FaultKind::slow:
      simulator_.pause(fault->delay_s.at(random_unit(
          simulator_.scenario().seed, "slow " + fault->name, static_cast<std::uint64_t>(calls_))));
      break;
    case FaultKind::error:
    case FaultKind::drop:
    case FaultKind::boot_never:
    case FaultKind::boot_fails:
      break;
  }
  return reply;
}

ApiReply Api::handle(const ApiRequest& request) {
  const std::uint64_t ordinal = ++calls_;
  const Scenario& scenario = simulator_.scenario();
  const std::string request_id = random_id("req", scenario.seed, ordinal);
  const WallTime at = wall_now();
  simulator_.pause(scenario.call_latency_s.at(random_unit(scenario.seed, "latency", ordinal)));
  std::string fault;
  ApiReply reply = answer(request, request_id, fault);
  reply.headers["X-Request-Id"] = request_id;
  const bool is_closed = reply.delivery == ApiReply::Delivery::connection_closed;
  Json query = Json::array();
  for (const auto& [name, value] : request.query) {
    query.push_back(name + "=" + value);
  }
  simulator_.log_request(
      {{"at", format_time(at)},
       {"method", request.method},
       {"path", request.path},
       {"query", query},
       {"status", is_closed ? Json(nullptr) : Json(reply.status)},
       {"request_id", request_id},
       {"idempotency_key",
        request.idempotency_key.empty() ? Json(nullptr) : Json(request.idempotency_key)},
       {"fault", fault.empty() ? Json(nullptr) : Json(fault)},
       {"ms", (wall_now() - at).count()}});
  return reply;
}

ApiReply Api::handle_metadata(const ApiRequest& request) {
  constexpr std::string_view kSuffix = "/v1/metadata/interruption";
  const WallTime at = wall_now();
  ApiReply reply = error_reply({404, "not_found", "no notice"}, "metadata");
  const std::string_view path = request.path;
  if (request.method == "GET" && path.starts_with("/") && path.ends_with(kSuffix) &&
      path.size() > kSuffix.size()) {
    const std::string id(path.substr(1, path.size() - kSuffix.size() - 1));
    const auto due = simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime) {
      const Instance* instance = fleet.find_instance(id).second;
      return instance == nullptr ? std::nullopt : instance->interruption_at;
    });
    if (due) {
      reply = {200, dump_json({{"action", "terminate"}, {"at", format_time(*due)}})};
    }
  }
  simulator_.log_request({{"at", format_time(at)},
                          {"method", request.method},
                          {"path", request.path},
                          {"status", reply.status},
                          {"fault", nullptr}});
  return reply;
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/provider.h"

#include "base/files.h"
#include "cloudburst/http/http.h"

#include <utility>

namespace acb::cloud {

struct Provider::Call {
  std::string method;
  std::string path;
  std::string_view body = {};
  std::string_view key = {};
  int* status = nullptr;              ///< where the caller tells successes apart
  std::string* request_id = nullptr;  ///< of an answer that is a success
};

namespace {

// Far above any account's fleet: a server whose pages never end must not hold a caller for ever.
constexpr int kMostPages = 200;

CloudError garbled(std::string_view what, std::string request_id = {}) {
  return {
      ErrorClass::ambiguous, "garbled", std::string(what), std::move(request_id), std::nullopt, {}};
}

/// An answer that never came names no request: the idempotency key, which the cloud knows too,
/// does.
CloudError from_transport(const Error& error, std::string_view key) {
  CloudError result{ErrorClass::ambiguous, "unreachable", error.message, {}, std::nullopt, {}};
  if (error.code == ErrorCode::timeout) {
    result.code = "timeout";
  } else if (error.code == ErrorCode::corrupt) {
    result.code = "garbled";
  } else if (error.code == ErrorCode::denied || error.code == ErrorCode::invalid) {
    // Never sent: our CA file or URL is wrong, or somebody else answers in the cloud's place.
    result.cls = ErrorClass::auth;
    result.code = "tls";
  }
  if (!key.empty()) {
    result.message.append(" (idempotency key ").append(key).append(")");
  }
  return result;
}

CloudResult<Allocation> as_allocation(const Json& json, const std::string& request_id) {
  auto allocation = allocation_from(json);
  if (!allocation) {
    return tl::unexpected<CloudError>(
        garbled("an allocation without an allocation_id", request_id));
  }
  allocation->request_id = request_id;
  return std::move(*allocation);
}

}  // namespace

Provider::Provider(Options options, Secret key)
    : options_(std::move(options)), key_(std::move(key)) {}

Result<Provider> Provider::open(Options options, Secret key) {
  if (!options.url.starts_with("https://")) {
    return fail(ErrorCode::invalid,
                "provider.url: '" + options.url + "': must start with https://");
  }
  while (options.url.ends_with('/')) {
    options.url.pop_back();
  }
  if (!options.ca_file.empty()) {
    const auto text = read_file(options.ca_file);
    if (!text) {
      return fail(text.error().code, "provider.ca_file: " + text.error().message);
    }
    if (text->find("-----BEGIN ") == std::string::npos) {
      return fail(ErrorCode::invalid,
                  "provider.ca_file: " + options.ca_file + ": must hold PEM certificates");
    }
  }
  return Provider(std::move(options), std::move(key));
}

CloudResult<Json> Provider::perform(const Call& call) const {
  HttpRequest request;
  request.method = call.method;
  request.url = options_.url + call.path;
  request.body = call.body;
  request.bearer = &key_;
  request.ca_file = options_.ca_file;
  request.connect_limit = options_.connect_limit;
  request.limit = options_.call_limit;
  request.headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}};
  if (!call.key.empty() && call.method == "POST") {
    request.headers.emplace_back("Idempotency-Key", call.key);
  }
  const auto response = http_call(request);
  if (!response) {
    return tl::unexpected<CloudError>(from_transport(response.error(), call.key));
  }
  const std::string request_id = response->header("x-request-id");
  if (response->status < 200 || response->status > 299) {
    return tl::unexpected<CloudError>(
        classify(response->status, response->body, response->header("retry-after"), request_id));
  }
  if (call.status != nullptr) {
    *call.status = response->status;
  }
  if (call.request_id != nullptr) {
    *call.request_id = request_id;
  }
  auto json = parse_json("answer", response->body.empty() ? "{}" : response->body);
  if (!json || !json->is_object()) {
    return tl::unexpected<CloudError>(garbled(call.method + " " +
                                                  call.path.substr(0, call.path.find('?')) +
                                                  ": the answer is not a JSON object",
                                              request_id));
  }
  return std::move(*json);
}

CloudResult<Allocation> Provider::allocate(std::string_view body, std::string_view key) const {
  std::string request_id;
  const auto json = perform({"POST", "/v1/gpu/allocate", body, key, nullptr, &request_id});
  return json ? as_allocation(*json, request_id) : tl::unexpected<CloudError>(json.error());
}

CloudResult<std::optional<Allocation>> Provider::find_by_key(std::string_view key) const {
  std::string request_id;
  const auto page = perform({"GET",
                             "/v1/gpu/allocations?idempotency_key=" + url_escape(key),
                             {},
                             key,
                             nullptr,
                             &request_id});
  if (!page) {
    return tl::unexpected<CloudError>(page.error());
  }
  // "Nothing there" is believed only where the answer says so: the next step may be to rent again.
  const auto found = page->find("allocations");
  if (found == page->end() || !found->is_array()) {
    return tl::unexpected<CloudError>(garbled("a page without allocations", request_id));
  }
  if (found->empty()) {
    return std::optional<Allocation>();
  }
  return as_allocation(found->front(), request_id).map([](Allocation&& allocation) {
    return std::optional(std::move(allocation));
  });
}

CloudResult<std::vector<Allocation>> Provider::list(std::string_view tag, Pages pages) const {
  std::vector<Allocation> all;
  std::string cursor;
  // What is beyond the most pages is the oldest.
  for (int read = 0; read < (pages == Pages::first ? 1 : kMostPages); ++read) {
    const auto page = perform({"GET",
                               "/v1/gpu/allocations?limit=500&tag=" + url_escape(tag) +
                                   (cursor.empty() ? "" : "&cursor=" + url_escape(cursor))});
    if (!page) {
      return tl::unexpected<CloudError>(page.error());
    }
    const auto found = page->find("allocations");
    if (found == page->end() || !found->is_array()) {
      return tl::unexpected<CloudError>(garbled("a page without allocations"));
    }
    for (const Json& entry : *found) {
      auto allocation = allocation_from(entry);
      if (!allocation) {
        return tl::unexpected<CloudError>(garbled("an allocation without an allocation_id"));
      }
      all.push_back(std::move(*allocation));
    }
    cursor = json_or<std::string>(*page, "next_cursor", "");
    if (cursor.empty()) {
      break;
    }
  }
  return all;
}

CloudResult<Allocation> Provider::get(std::string_view allocation_id) const {
  std::string request_id;
  const auto json = perform(
      {"GET", "/v1/gpu/allocations/" + url_escape(allocation_id), {}, {}, nullptr, &request_id});
  return json ? as_allocation(*json, request_id) : tl::unexpected<CloudError>(json.error());
}

CloudResult<Provider::Released> Provider::release(std::string_view allocation_id) const {
  int status = 0;
  const auto answer = perform(
      {"POST", "/v1/gpu/allocations/" + url_escape(allocation_id) + "/release", "{}", {}, &status});
  if (!answer) {
    return tl::unexpected<CloudError>(answer.error());
  }
  return status == 200 ? Released::confirmed : Released::accepted;
}

CloudResult<std::vector<Offer>> Provider::offers(std::string_view gpu_type) const {
  const auto page = perform(
      {"GET", "/v1/gpu/offers" + (gpu_type.empty() ? "" : "?gpu_type=" + url_escape(gpu_type))});
  if (!page) {
    return tl::unexpected<CloudError>(page.error());
  }
  const auto found = page->find("offers");
  if (found == page->end() || !found->is_array()) {
    return tl::unexpected<CloudError>(garbled("an answer without offers"));
  }
  std::vector<Offer> offers;
  for (const Json& entry : *found) {
    if (auto offer = offer_from(entry)) {
      offers.push_back(std::move(*offer));
    }
  }
  return offers;
}

Result<Secret> load_cloud_key(const std::string& key_file) {
  constexpr const char* kVariable = "AUTO_CLOUD_API_KEY";
  ACB_TRY_ASSIGN(std::optional<Secret> key, Secret::take_environment(kVariable));
  if (key) {
    return std::move(*key);
  }
  if (key_file.empty()) {
    return fail(ErrorCode::not_found,
                std::string("cloud key: neither the environment variable ") + kVariable +
                    " nor provider.key_file in autocloud.toml is set");
  }
  return Secret::from_file(key_file);
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/join/node_join.h"

#include "base/files.h"
#include "base/json.h"
#include "cloudburst/http/http.h"
#include "cloudburst/join/digest.h"

#include <spdlog/spdlog.h>
#include <string.h>

#include <thread>
#include <utility>

namespace acb::cloud {

namespace {

using Clock = std::chrono::steady_clock;

void wipe(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
}

std::string reason_in(const HttpResponse& response) {
  const auto json = parse_json("answer", response.body);
  const Json error = json && json->is_object() ? json->value("error", Json()) : Json();
  return json_or<std::string>(error, "message", "HTTP " + std::to_string(response.status));
}

Result<Json> ask_once(const JoinOptions& options, const Secret& secret) {
  HttpRequest request;
  request.method = "POST";
  request.url = options.url + "/v1/join";
  request.headers = {{"Content-Type", "application/json"}};
  request.body =
      dump_json({{"secret", std::string(secret.reveal())}, {"instance", options.instance}});
  request.ca_file = options.ca_file.string();
  request.verify_name = false;  // the certificate itself is pinned
  request.limit = std::chrono::seconds(10);
  auto response = http_call(request);
  wipe(request.body);
  if (!response) {
    return tl::unexpected<Error>(response.error());
  }
  const std::string context = "join: " + options.url + ": ";
  switch (response->status) {
    case 200:
      break;
    case 400:
    case 403:
      return fail(ErrorCode::denied, context + reason_in(*response));
    case 409:
      return fail(ErrorCode::exists, context + reason_in(*response));
    default:
      return fail(ErrorCode::unavailable, context + reason_in(*response));
  }
  auto json = parse_json("join: answer", response->body);
  wipe(response->body);
  return json;
}

bool is_final(ErrorCode code) {
  return code == ErrorCode::denied || code == ErrorCode::exists || code == ErrorCode::invalid;
}

Status write_down(const JoinOptions& options, const Json& grant) {
  const std::string node = json_or<std::string>(grant, "node", "");
  if (node.empty()) {
    return fail(ErrorCode::corrupt, "join: " + options.url + ": the answer names no node");
  }
  ACB_TRY(make_folders(options.out));
  ACB_TRY_ASSIGN(std::string key, from_base64(json_or<std::string>(grant, "munge_key", "")));
  if (!key.empty()) {
    auto written = write_file(options.out / "munge.key", key, 0400);
    wipe(key);
    ACB_TRY(std::move(written));
  }
  const Json about{{"node", node},
                   {"cluster", json_or<std::string>(grant, "cluster", "")},
                   {"conf_server", json_or<std::string>(grant, "conf_server", "")},
                   {"instance", options.instance}};
  ACB_TRY(write_file(options.out / "node.json", dump_json(about, 2) + "\n", 0644));
  ACB_TRY(make_folders(options.rented_mark.parent_path()));
  return write_file(options.rented_mark, options.instance + "\n", 0644);
}

}  // namespace

Status join_cluster(const JoinOptions& options, const Secret& secret) {
  constexpr std::chrono::seconds kInterval{2};
  const Clock::time_point end = Clock::now() + options.deadline;
  while (true) {
    auto grant = ask_once(options, secret);
    if (grant) {
      return write_down(options, *grant);
    }
    if (is_final(grant.error().code)) {
      return tl::unexpected<Error>(grant.error());
    }
    if (Clock::now() + kInterval >= end) {
      return fail(ErrorCode::timeout,
                  "join: not let in within " + std::to_string(options.deadline.count()) +
                      " s; the last try: " + grant.error().message);
    }
    spdlog::warn("{}; trying again", grant.error().message);
    std::this_thread::sleep_for(kInterval);
  }
}

}  // namespace acb::cloud

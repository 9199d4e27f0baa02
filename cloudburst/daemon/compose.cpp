// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/compose.h"

#include "base/files.h"
#include "cloudburst/join/digest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace acb::cloud {

namespace {

constexpr std::size_t kTemplateLimit = 65536;

std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

}  // namespace

Status check_template(const Config& config) {
  const auto text = read_file(config.user_data_template, kTemplateLimit);
  if (!text) {
    return fail_with("provider.user_data_template", text.error());
  }
  if (text->find("@JOIN_SECRET@") == std::string::npos) {
    return fail(ErrorCode::invalid,
                "provider.user_data_template: " + config.user_data_template.string() +
                    ": must hold @JOIN_SECRET@, without which no node gets in");
  }
  return {};
}

Status compose_request(Lease& lease, const Config& config, const JoinPlace& join, WallTime ends) {
  ACB_TRY_ASSIGN(std::string user_data, read_file(config.user_data_template, kTemplateLimit));
  const std::string secret = new_join_secret();
  const std::vector<std::pair<std::string_view, std::string_view>> values{
      {"@NODE@", lease.node},
      {"@JOIN_URL@", join.url},
      {"@JOIN_SECRET@", secret},
      {"@JOIN_CA_BASE64@", join.ca_base64},
      {"@CLUSTER@", config.cluster}};
  for (const auto& [name, value] : values) {
    user_data = replace_all(std::move(user_data), name, value);
  }
  AllocateRequest request;
  request.gpu_type = lease.gpu_type;
  request.gpus = config.gpus_per_node;
  request.duration_min = std::max(lease.minimum_min, 1);
  request.offer_id = lease.offer_id;
  request.market = lease.market;
  if (!config.max_price_per_hour.empty()) {
    ACB_TRY_ASSIGN(request.max_price_per_hour,
                   parse_money("provider.max_price_per_hour", config.max_price_per_hour));
  }
  request.image = config.image;
  request.user_data = std::move(user_data);
  request.tags = lease_tags(
      {config.cluster, lease.made_for.job, lease.made_for.restart, lease.node, lease.attempt},
      ends);
  ACB_TRY_ASSIGN(lease.request, allocate_body(request));
  lease.secret_sha256 = sha256_hex(secret);
  return {};
}

}  // namespace acb::cloud

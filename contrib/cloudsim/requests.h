// SPDX-License-Identifier: Apache-2.0
// The bodies of requests, checked. Pure; every function answers invalid_argument naming the field,
// the value and what is allowed.
#pragma once

#include "base/json.h"
#include "cloudsim/api_error.h"
#include "cloudsim/market.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace acb::sim {

struct AllocateRequest {
  Wish wish;
  std::int64_t duration_min = 0;
  std::string user_data;
  std::map<std::string, std::string> tags;
};
[[nodiscard]] ApiResult<AllocateRequest> parse_allocate(const Json& body);

struct JobRequest {
  Wish wish;
  std::string name;
  std::string image;
  std::string command;
  std::int64_t max_duration_min = 0;  ///< 0: none
  std::map<std::string, std::string> tags;
};
[[nodiscard]] ApiResult<JobRequest> parse_job(const Json& body);

[[nodiscard]] ApiResult<std::map<std::string, std::string>> parse_tags(const Json& body);
/// Absent or an empty body: all of them, as an empty list.
[[nodiscard]] ApiResult<std::vector<std::string>> parse_instance_ids(const Json& body);
/// "key:value".
[[nodiscard]] ApiResult<std::pair<std::string, std::string>> parse_tag(std::string_view text);

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
// The errors that the API answers with.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace acb::sim {

struct [[nodiscard]] ApiError {
  int status = 500;
  std::string code = "internal";
  std::string message;
  std::optional<std::int64_t> retry_after_s = std::nullopt;
  std::map<std::string, std::string> extra = {};  ///< further members, such as allocation_id
};

template <typename T>
using ApiResult = tl::expected<T, ApiError>;

[[nodiscard]] inline tl::unexpected<ApiError> refuse(int status,
                                                     std::string code,
                                                     std::string message) {
  return tl::unexpected<ApiError>(ApiError{status, std::move(code), std::move(message)});
}
[[nodiscard]] inline tl::unexpected<ApiError> bad_argument(std::string message) {
  return refuse(400, "invalid_argument", std::move(message));
}
[[nodiscard]] inline tl::unexpected<ApiError> not_found(std::string message) {
  return refuse(404, "not_found", std::move(message));
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
// nlohmann::json without its exceptions. Pure and thread-safe.
#pragma once

#include "base/result.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace acb {

using Json = nlohmann::json;

/// `text` as JSON, or `corrupt` naming `what` and the place of the fault.
[[nodiscard]] Result<Json> parse_json(std::string_view what, std::string_view text);

/// The member as T, or `fallback` where it is absent, null or of another type.
template <typename T>
[[nodiscard]] T json_or(const Json& object, std::string_view key, T fallback) {
  if (!object.is_object()) {
    return fallback;
  }
  const auto found = object.find(key);
  if (found == object.end()) {
    return fallback;
  }
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->template get<T>() : fallback;
  } else if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->template get<T>() : fallback;
  } else {
    static_assert(std::is_arithmetic_v<T>, "strings, booleans and numbers");
    return found->is_number() ? found->template get<T>() : fallback;
  }
}

/// One line; bytes that are not UTF-8 are replaced, never thrown about.
[[nodiscard]] std::string dump_json(const Json& json, int indent = -1);

}  // namespace acb

// SPDX-License-Identifier: Apache-2.0
// nlohmann::json without its exceptions. Pure and thread-safe.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace acb {

using Json = nlohmann::json;

/// `text` as JSON, or `corrupt` naming `what` and the place of the fault. Nesting too deep for a
/// stack is a fault.
[[nodiscard]] Result<Json> parse_json(std::string_view what, std::string_view text);

/// The number as a whole one, fractions cut off, or `fallback` where T does not hold it.
template <typename T>
[[nodiscard]] T whole_or(const Json& number, T fallback) {
  if (number.is_number_unsigned()) {
    const auto value = number.get<std::uint64_t>();
    return std::in_range<T>(value) ? static_cast<T>(value) : fallback;
  }
  if (number.is_number_float()) {
    constexpr double kMost = 9.2e18;  // beyond it, the cast is undefined
    const auto value = number.get<double>();
    if (!(value > -kMost && value < kMost)) {
      return fallback;
    }
    const auto whole = static_cast<std::int64_t>(value);
    return std::in_range<T>(whole) ? static_cast<T>(whole) : fallback;
  }
  const auto value = number.get<std::int64_t>();
  return std::in_range<T>(value) ? static_cast<T>(value) : fallback;
}

/// The member as T, or `fallback` where it is absent, null, of another type, or out of T's range.
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
  } else if constexpr (std::is_integral_v<T>) {
    return found->is_number() ? whole_or<T>(*found, fallback) : fallback;
  } else {
    static_assert(std::is_arithmetic_v<T>, "strings, booleans and numbers");
    return found->is_number() ? found->template get<T>() : fallback;
  }
}

/// One line; bytes that are not UTF-8 are replaced, never thrown about.
[[nodiscard]] std::string dump_json(const Json& json, int indent = -1);

}  // namespace acb

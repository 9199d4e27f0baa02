// SPDX-License-Identifier: Apache-2.0
// Rows of settings tables for the types of this folder, beside those of base/settings.h.
#pragma once

#include "base/settings.h"
#include "cloudsim/money.h"
#include "cloudsim/random.h"

#include <cstddef>

namespace acb::sim {

template <typename Config>
[[nodiscard]] Setting<Config> distribution_setting(std::string key,
                                                   Distribution Config::*member,
                                                   std::string help) {
  return {
      std::move(key),
      std::move(help),
      [=](Config& config, std::string_view name, const std::vector<std::string>& values) -> Status {
        ACB_TRY_ASSIGN(const std::string text, single(name, values));
        ACB_TRY_ASSIGN(config.*member, parse_distribution(name, text));
        return {};
      },
      [=](const Config& config) { return format_distribution(config.*member); }};
}

/// One of the names in `choices`, an array of (value, name).
template <typename Config, typename Value, typename Choices>
[[nodiscard]] Setting<Config> choice_setting(std::string key,
                                             Value Config::*member,
                                             const Choices& choices,
                                             const std::string& help) {
  std::string names;
  for (const auto& [value, name] : choices) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return {
      std::move(key),
      help + ": " + names,
      [=](Config& config, std::string_view name, const std::vector<std::string>& values) -> Status {
        ACB_TRY_ASSIGN(const std::string text, single(name, values));
        for (const auto& [value, known] : choices) {
          if (known == text) {
            config.*member = value;
            return {};
          }
        }
        return fail(ErrorCode::invalid,
                    std::string(name) + ": '" + text + "': must be one of " + names);
      },
      [=](const Config& config) {
        for (const auto& [value, known] : choices) {
          if (config.*member == value) {
            return std::string(known);
          }
        }
        return std::string();
      }};
}

}  // namespace acb::sim

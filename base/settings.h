// SPDX-License-Identifier: Apache-2.0
// One configuration path: defaults < TOML file < flags, through one table with a row per key. An
// unknown key is an error. toml++ and CLI11 stay in settings.cpp; both throw, and are slow to
// compile.
#pragma once

#include "base/result.h"
#include "base/text.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
}

namespace acb {

/// Dotted key ("checkpoint.interval_s") to its value as text; an array has one entry per element.
using RawSettings = std::map<std::string, std::vector<std::string>>;

/// The keys and values of a TOML text. Arrays may hold plain values only. `invalid` names the
/// place.
[[nodiscard]] Result<RawSettings> parse_toml(std::string_view what, std::string_view text);
[[nodiscard]] Result<RawSettings> read_toml(const std::filesystem::path& path);

template <typename Config>
struct Setting {
  std::string key;   ///< "table.name", or "table.*" for any name in the table
  std::string help;  ///< what it does, its unit, what is allowed
  /// Sets the value; `key` is the full one. An error names the key, the value and what is allowed.
  std::function<Status(Config&, std::string_view key, const std::vector<std::string>&)> set;
  std::function<std::string(const Config&)> get;  ///< as text, for help and listings
};

/// Whether a row's key covers a full key.
[[nodiscard]] bool covers(std::string_view row_key, std::string_view key);
/// "unknown key", with the nearest of the known ones.
[[nodiscard]] tl::unexpected<Error> unknown_key(std::string_view source,
                                                std::string_view key,
                                                const std::vector<std::string>& known);
/// Exactly one value, else `invalid`.
[[nodiscard]] Result<std::string> single(std::string_view key,
                                         const std::vector<std::string>& values);

/// Applies every key of `raw`, or returns the first error with `source` in front.
template <typename Config>
[[nodiscard]] Status apply_settings(Config& config,
                                    const std::vector<Setting<Config>>& rows,
                                    const RawSettings& raw,
                                    std::string_view source) {
  for (const auto& [key, values] : raw) {
    const Setting<Config>* found = nullptr;
    std::vector<std::string> known;
    for (const auto& row : rows) {
      known.push_back(row.key);
      if (covers(row.key, key)) {
        found = &row;
      }
    }
    if (found == nullptr) {
      return unknown_key(source, key, known);
    }
    if (auto done = found->set(config, key, values); !done) {
      return fail_with(source, done.error());
    }
  }
  return {};
}

struct Flag {
  std::string key;            ///< "checkpoint.interval_s" becomes --checkpoint-interval-s
  std::string help;           ///< shown by --help
  std::string default_value;  ///< shown by --help
};
/// Adds a flag per key to the app; the values given on the command line end up in `into` (which
/// must outlive the parsing). A flag may be repeated where its key takes an array.
void add_flags(CLI::App& app, const std::vector<Flag>& flags, RawSettings& into);

template <typename Config>
[[nodiscard]] std::vector<Flag> flags_of(const std::vector<Setting<Config>>& rows) {
  const Config defaults{};
  std::vector<Flag> flags;
  flags.reserve(rows.size());
  for (const auto& row : rows) {
    flags.push_back({row.key, row.help, row.get ? row.get(defaults) : std::string()});
  }
  return flags;
}

/// Rows for the common types. `member` is a pointer to a member of Config.
template <typename Config, typename Integer>
[[nodiscard]] Setting<Config> integer_setting(std::string key,
                                              Integer Config::*member,
                                              std::int64_t least,
                                              std::int64_t most,
                                              std::string help) {
  return {
      std::move(key),
      std::move(help),
      [=](Config& config, std::string_view name, const std::vector<std::string>& values) -> Status {
        ACB_TRY_ASSIGN(const std::string text, single(name, values));
        ACB_TRY_ASSIGN(const std::int64_t value, parse_integer(name, text, least, most));
        config.*member = static_cast<Integer>(value);
        return {};
      },
      [=](const Config& config) { return std::to_string(config.*member); }};
}
template <typename Config, typename Number>
[[nodiscard]] Setting<Config> number_setting(
    std::string key, Number Config::*member, double least, double most, std::string help) {
  return {
      std::move(key),
      std::move(help),
      [=](Config& config, std::string_view name, const std::vector<std::string>& values) -> Status {
        ACB_TRY_ASSIGN(const std::string text, single(name, values));
        ACB_TRY_ASSIGN(const double value, parse_number(name, text, least, most));
        config.*member = static_cast<Number>(value);
        return {};
      },
      [=](const Config& config) { return format_number(static_cast<double>(config.*member)); }};
}
template <typename Config>
[[nodiscard]] Setting<Config> bool_setting(std::string key,
                                           bool Config::*member,
                                           std::string help) {
  return {
      std::move(key),
      std::move(help),
      [=](Config& config, std::string_view name, const std::vector<std::string>& values) -> Status {
        ACB_TRY_ASSIGN(const std::string text, single(name, values));
        ACB_TRY_ASSIGN(config.*member, parse_bool(name, text));
        return {};
      },
      [=](const Config& config) { return config.*member ? "true" : "false"; }};
}
/// For std::string and std::filesystem::path.
template <typename Config, typename Text>
[[nodiscard]] Setting<Config> text_setting(std::string key,
                                           Text Config::*member,
                                           std::string help) {
  return {
      std::move(key),
      std::move(help),
      [=](Config& config, std::string_view name, const std::vector<std::string>& values) -> Status {
        ACB_TRY_ASSIGN(config.*member, single(name, values));
        return {};
      },
      [=](const Config& config) { return std::string(config.*member); }};
}

}  // namespace acb

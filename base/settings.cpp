// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include "base/files.h"

#include <CLI/CLI.hpp>
#include <toml++/toml.h>

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace acb {

namespace {

Result<std::string> text_of(const std::string& key, const toml::node& node) {
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  if (const auto* integer = node.as_integer()) {
    return std::to_string(integer->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return format_number(number->get());
  }
  if (const auto* truth = node.as_boolean()) {
    return std::string(truth->get() ? "true" : "false");
  }
  return fail(ErrorCode::invalid,
              key + ": must be a text, a number, true, false or an array of these");
}

Status flatten(const std::string& prefix, const toml::table& table, RawSettings& into) {
  for (const auto& [name, node] : table) {
    const std::string key =
        prefix.empty() ? std::string(name.str()) : prefix + "." + std::string(name.str());
    if (const auto* inner = node.as_table()) {
      ACB_TRY(flatten(key, *inner, into));
      continue;
    }
    std::vector<std::string>& values = into[key];
    if (const auto* array = node.as_array()) {
      for (const auto& element : *array) {
        ACB_TRY_ASSIGN(std::string text, text_of(key, element));
        values.push_back(std::move(text));
      }
      continue;
    }
    ACB_TRY_ASSIGN(std::string text, text_of(key, node));
    values.push_back(std::move(text));
  }
  return {};
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

Result<RawSettings> parse_toml(std::string_view what, std::string_view text) {
  try {
    RawSettings raw;
    const toml::table table = toml::parse(text);
    if (auto done = flatten("", table, raw); !done) {
      return fail_with(what, done.error());
    }
    return raw;
  } catch (const toml::parse_error& error) {
    const auto& place = error.source().begin;
    return fail(
        ErrorCode::invalid,
        fmt::format(
            "{}: line {}, column {}: {}", what, place.line, place.column, error.description()));
  }
}

Result<RawSettings> read_toml(const std::filesystem::path& path) {
  ACB_TRY_ASSIGN(const std::string text, read_file(path, std::size_t{1} << 20));
  return parse_toml(path.string(), text);
}

bool covers(std::string_view row_key, std::string_view key) {
  if (row_key.ends_with(".*")) {
    row_key.remove_suffix(1);
    return key.starts_with(row_key) && key.size() > row_key.size();
  }
  return row_key == key;
}

tl::unexpected<Error> unknown_key(std::string_view source,
                                  std::string_view key,
                                  const std::vector<std::string>& known) {
  const auto nearest =
      std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
        return edit_distance(a, key) < edit_distance(b, key);
      });
  std::string hint;
  if (nearest != known.end()) {
    hint = edit_distance(*nearest, key) <= 3 ? "; did you mean " + *nearest + "?"
                                             : "; known are " + join(known, ", ");
  }
  return fail(ErrorCode::invalid, fmt::format("{}: unknown key {}{}", source, key, hint));
}

Result<std::string> single(std::string_view key, const std::vector<std::string>& values) {
  if (values.size() != 1) {
    return fail(ErrorCode::invalid,
                fmt::format("{}: {} values where one is wanted", key, values.size()));
  }
  return values.front();
}

void add_flags(CLI::App& app, const std::vector<Flag>& flags, RawSettings& into) {
  for (const Flag& flag : flags) {
    if (flag.key.ends_with(".*")) {
      continue;  // open tables are for files
    }
    std::string name = "--" + flag.key;
    std::replace(name.begin(), name.end(), '.', '-');
    std::replace(name.begin(), name.end(), '_', '-');
    const auto store = [&into, key = flag.key](const std::vector<std::string>& values) {
      into[key] = values;
      return true;
    };
    const std::string help =
        flag.default_value.empty() ? flag.help : flag.help + " [" + flag.default_value + "]";
    app.add_option(name, store, help)
        ->type_name("")
        ->expected(1, 64)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

}  // namespace acb

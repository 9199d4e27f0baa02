// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/site_config.h"

#include "base/files.h"
#include "base/text.h"

#include <toml++/toml.h>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace acb::spank {

namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;

tl::unexpected<Error> wrong(std::string_view key, const std::string& why) {
  return fail(ErrorCode::invalid, std::string(key) + ": " + why);
}

/// Slurm's own lists are split at these.
bool is_plain_name(std::string_view text) {
  return !text.empty() && text.find_first_of(", \t\r\n[]()&|*") == std::string_view::npos;
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Status read_name(const toml::table& burst, std::string_view key, std::string& into) {
  const auto* node = burst.get(key);
  if (node == nullptr) {
    return {};
  }
  const std::string full = "burst." + std::string(key);
  const auto* text = node->as_string();
  if (text == nullptr || !is_plain_name(text->get())) {
    return wrong(full, "must be one plain name in quotes");
  }
  into = text->get();
  return {};
}

Status read_gpu_types(const toml::table& burst, std::vector<std::string>& into) {
  const auto* node = burst.get("gpu_types");
  if (node == nullptr) {
    return {};
  }
  const auto* array = node->as_array();
  if (array == nullptr || array->empty()) {
    return wrong("burst.gpu_types", "must be a list of at least one GPU type");
  }
  into.clear();
  for (const auto& element : *array) {
    const auto* text = element.as_string();
    if (text == nullptr || !is_gpu_type(text->get())) {
      return wrong("burst.gpu_types", "must hold GPU types of a-z, 0-9, '.' and '-'");
    }
    into.push_back(text->get());
  }
  return {};
}

Status read_burst(const toml::table& burst, SiteConfig& config) {
  if (const auto* node = burst.get("max_nodes")) {
    const auto* number = node->as_integer();
    if (number == nullptr || number->get() < 1 || number->get() > kMostNodes) {
      return wrong("burst.max_nodes", "must be 1 to " + std::to_string(kMostNodes));
    }
    config.limits.max_nodes = static_cast<int>(number->get());
  }
  std::string market(name_of(config.market));
  ACB_TRY(read_name(burst, "market", market));
  ACB_TRY_ASSIGN(config.market, parse_market("burst.market", market));
  ACB_TRY(read_name(burst, "default_partition", config.default_partition));
  ACB_TRY(read_name(burst, "own_feature", config.own_feature));
  ACB_TRY(read_name(burst, "cloud_feature", config.cloud_feature));
  if (config.own_feature == config.cloud_feature) {
    return wrong("burst.cloud_feature", "must differ from burst.own_feature");
  }
  return read_gpu_types(burst, config.limits.gpu_types);
}

Status read_twins(const toml::table& twins, SiteConfig& config) {
  for (const auto& [key, node] : twins) {
    const std::string partition(key.str());
    const auto* twin = node.as_string();
    if (twin == nullptr || !is_plain_name(twin->get()) || !is_plain_name(partition)) {
      return wrong("twins." + partition, "must be the name of one partition");
    }
    config.twins[partition] = twin->get();
  }
  for (const auto& [partition, twin] : config.twins) {
    if (config.twins.contains(twin)) {
      return wrong("twins." + partition, "'" + twin + "' has a twin of its own");
    }
  }
  return {};
}

using ReadTable = Status (*)(const toml::table&, SiteConfig&);

Status read_table(std::string_view what,
                  const toml::table& root,
                  std::string_view name,
                  SiteConfig& config,
                  ReadTable read) {
  const auto* node = root.get(name);
  if (node == nullptr) {
    return {};
  }
  const auto* table = node->as_table();
  const Status done = table != nullptr ? read(*table, config) : wrong(name, "must be a table");
  return done ? done : fail_with(what, done.error());
}

}  // namespace

bool SiteConfig::is_twin(std::string_view partition) const {
  return std::any_of(
      twins.begin(), twins.end(), [&](const auto& entry) { return entry.second == partition; });
}

Result<SiteConfig> parse_site_config(std::string_view what, std::string_view text) {
  try {
    const toml::table root = toml::parse(text);
    SiteConfig config;
    ACB_TRY(read_table(what, root, "burst", config, read_burst));
    ACB_TRY(read_table(what, root, "twins", config, read_twins));
    return config;
  } catch (const toml::parse_error& error) {
    const auto& place = error.source().begin;
    return fail(ErrorCode::invalid,
                std::string(what) + ": line " + std::to_string(place.line) + ": " +
                    std::string(error.description()));
  }
}

SiteFile::Stamp SiteFile::stamp() const {
  struct stat found {};
  if (::stat(path_.c_str(), &found) != 0) {
    return {.error_number = errno};
  }
  return {.modified_ns = nanoseconds(found.st_mtim),
          .changed_ns = nanoseconds(found.st_ctim),
          .size = found.st_size,
          .inode = found.st_ino};
}

Site SiteFile::current(bool* changed) {
  const std::lock_guard lock(mutex_);
  const Stamp now = stamp();
  const bool again = !seen_ || *seen_ != now;
  if (changed != nullptr) {
    *changed = again;
  }
  if (again) {
    const auto read = read_file(path_, kLargestFile).and_then([&](const std::string& text) {
      return parse_site_config(path_.string(), text);
    });
    if (read) {
      site_.config = *read;
      site_.error.clear();
    } else {
      site_.error = read.error().message;
    }
    seen_ = now;
  }
  return site_;
}

}  // namespace acb::spank

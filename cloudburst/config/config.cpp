// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/config/config.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace acb::cloud {

namespace {

using Values = std::vector<std::string>;

/// Letters, digits, '_', '-' and '.': what can stand in a key, a tag and a file name unquoted.
bool is_plain_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

Setting<Config> name_setting(std::string key, std::string Config::*member, std::string help) {
  auto row = text_setting<Config>(std::move(key), member, std::move(help));
  row.set = [member](Config& config, std::string_view name, const Values& values) -> Status {
    ACB_TRY_ASSIGN(const std::string text, single(name, values));
    if (!is_plain_name(text)) {
      return fail(
          ErrorCode::invalid,
          std::string(name) + ": '" + text + "': must be letters, digits, '_', '-' and '.'");
    }
    config.*member = text;
    return {};
  };
  return row;
}

Setting<Config> choice_setting(std::string key,
                               std::string Config::*member,
                               const Values& allowed,
                               std::string help) {
  auto row = text_setting<Config>(std::move(key), member, std::move(help));
  row.set = [=](Config& config, std::string_view name, const Values& values) -> Status {
    ACB_TRY_ASSIGN(const std::string text, single(name, values));
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
      return fail(ErrorCode::invalid,
                  std::string(name) + ": '" + text + "': must be one of " + join(allowed, ", "));
    }
    config.*member = text;
    return {};
  };
  return row;
}

Setting<Config> gpu_types_setting() {
  return {"burst.gpu_types",
          "what --autocloud-gpu may name; the first is the default",
          [](Config& config, std::string_view name, const Values& values) -> Status {
            if (values.empty() || !std::all_of(values.begin(), values.end(), is_plain_name)) {
              return fail(ErrorCode::invalid,
                          std::string(name) + ": '" + join(values, ", ") +
                              "': must be one or more names of letters, digits, '_', '-' and '.'");
            }
            config.gpu_types = values;
            return {};
          },
          [](const Config& config) { return join(config.gpu_types, ","); }};
}

Setting<Config> twins_setting() {
  return {"twins.*",
          "the burst twin of a partition: own and cloud nodes, filled by job_submit alone",
          [](Config& config, std::string_view key, const Values& values) -> Status {
            ACB_TRY_ASSIGN(config.twins[std::string(key.substr(6))], single(key, values));
            return {};
          },
          nullptr};
}

Setting<Config> price_setting() {
  return {"provider.max_price_per_hour",
          "dearest offer taken, per instance, decimal; empty: any",
          [](Config& config, std::string_view key, const Values& values) -> Status {
            ACB_TRY_ASSIGN(const std::string text, single(key, values));
            if (!text.empty()) {
              ACB_TRY(parse_number(key, text, 0, 1e6));
            }
            config.max_price_per_hour = text;
            return {};
          },
          [](const Config& config) { return config.max_price_per_hour; }};
}

void add_burst_rows(std::vector<Setting<Config>>& rows) {
  rows.push_back(name_setting(
      "cluster", &Config::cluster, "name of this cluster in idempotency keys and tags"));
  rows.push_back(integer_setting(
      "burst.max_nodes", &Config::max_nodes, 1, 1024, "largest N of --autocloud-burst"));
  rows.push_back(name_setting(
      "burst.default_partition", &Config::default_partition, "partition of a job that names none"));
  rows.push_back(
      name_setting("burst.own_feature", &Config::own_feature, "node feature of own nodes"));
  rows.push_back(
      name_setting("burst.cloud_feature", &Config::cloud_feature, "node feature of cloud nodes"));
  rows.push_back(gpu_types_setting());
  rows.push_back(choice_setting("burst.market",
                                &Config::market,
                                {"spot", "on-demand"},
                                "market of a job that names none: spot or on-demand"));
  rows.push_back(twins_setting());
}

void add_node_rows(std::vector<Setting<Config>>& rows) {
  rows.push_back(text_setting(
      "nodes.cloud", &Config::cloud_nodes, "the State=CLOUD nodes that are ours, a hostlist"));
  rows.push_back(integer_setting("nodes.idle_release_s",
                                 &Config::idle_release_s,
                                 1,
                                 86400,
                                 "seconds for which a node that no job owns is kept while a burst "
                                 "of its kind waits, once its paid time is used"));
  rows.push_back(integer_setting("nodes.boot_timeout_s",
                                 &Config::boot_timeout_s,
                                 10,
                                 7200,
                                 "seconds that a rented node has to register in Slurm"));
}

void add_provider_rows(std::vector<Setting<Config>>& rows) {
  rows.push_back(text_setting("provider.url", &Config::provider_url, "the cloud API, https only"));
  rows.push_back(text_setting(
      "provider.ca_file", &Config::ca_file, "certificates to trust; empty: the system's"));
  rows.push_back(text_setting("provider.key_file",
                              &Config::key_file,
                              "file of the API key that only its owner can read; "
                              "AUTO_CLOUD_API_KEY wins"));
  rows.push_back(integer_setting(
      "provider.gpus_per_node", &Config::gpus_per_node, 1, 64, "GPUs of a rented node"));
  rows.push_back(price_setting());
  rows.push_back(text_setting("provider.image", &Config::image, "machine image; empty: default"));
  rows.push_back(text_setting("provider.user_data_template",
                              &Config::user_data_template,
                              "user data of rented nodes; @NODE@, @JOIN_URL@, @JOIN_SECRET@, "
                              "@JOIN_CA_BASE64@ and @CLUSTER@ are replaced"));
}

void add_place_rows(std::vector<Setting<Config>>& rows) {
  rows.push_back(text_setting(
      "join.listen", &Config::join_listen, "address:port on which nodes join over TLS"));
  rows.push_back(text_setting("join.address",
                              &Config::join_address,
                              "host:port that rented nodes reach; empty: this host's name"));
  rows.push_back(text_setting("join.munge_key_file",
                              &Config::munge_key_file,
                              "munge key for joining nodes, readable by the daemon's user; "
                              "empty: they bring their own"));
  rows.push_back(
      text_setting("hooks.resume", &Config::resume_hook, "the site's own ResumeProgram"));
  rows.push_back(
      text_setting("hooks.suspend", &Config::suspend_hook, "the site's own SuspendProgram"));
  rows.push_back(text_setting(
      "hooks.resumefail", &Config::resumefail_hook, "the site's own ResumeFailProgram"));
  rows.push_back(
      text_setting("hooks.prolog", &Config::prolog_hook, "the site's own PrologSlurmctld"));
  rows.push_back(text_setting("paths.state", &Config::state_folder, "folder of the ledger"));
  rows.push_back(text_setting("paths.spool", &Config::spool_folder, "folder of the inbox"));
  rows.push_back(text_setting("paths.run", &Config::run_folder, "folder of the socket"));
}

Status need(bool given, std::string_view key) {
  if (given) {
    return {};
  }
  return fail(ErrorCode::invalid, std::string(key) + ": has no default: must be given");
}

}  // namespace

std::vector<Setting<Config>> config_rows() {
  std::vector<Setting<Config>> rows;
  add_burst_rows(rows);
  add_node_rows(rows);
  add_provider_rows(rows);
  add_place_rows(rows);
  return rows;
}

Status check_config(const Config& config) {
  ACB_TRY(need(!config.cluster.empty(), "cluster"));
  ACB_TRY(need(!config.cloud_nodes.empty(), "nodes.cloud"));
  ACB_TRY(need(!config.twins.empty(), "twins"));
  // Keys have at most 128 characters, and the job, restart, node and attempt follow.
  if (config.cluster.size() > 32) {
    return fail(ErrorCode::invalid, "cluster: '" + config.cluster + "': at most 32 characters");
  }
  if (!config.provider_url.starts_with("https://")) {
    return fail(ErrorCode::invalid,
                "provider.url: '" + config.provider_url + "': must start with https://");
  }
  for (const auto& [partition, twin] : config.twins) {
    if (partition == twin || config.twins.contains(twin)) {
      return fail(ErrorCode::invalid,
                  "twins." + partition + ": '" + twin + "': must be a partition of its own");
    }
  }
  return {};
}

Result<Config> load_config(const std::filesystem::path& path) {
  ACB_TRY_ASSIGN(const RawSettings raw, read_toml(path));
  Config config;
  ACB_TRY(apply_settings(config, config_rows(), raw, path.string()));
  if (auto checked = check_config(config); !checked) {
    return fail_with(path.string(), checked.error());
  }
  return config;
}

HookConfig load_hook_config(const std::filesystem::path& path,
                            const std::filesystem::path& fallback) {
  HookConfig loaded;
  auto raw = read_toml(path);
  if (!raw) {
    loaded.wrong.push_back(raw.error().message);
    raw = read_toml(fallback);
  }
  for (const auto& [key, values] : raw.value_or(RawSettings())) {
    if (key != "nodes.cloud" && !key.starts_with("hooks.") && !key.starts_with("paths.")) {
      continue;
    }
    const RawSettings one{{key, values}};
    if (auto set = apply_settings(loaded.config, config_rows(), one, path.string()); !set) {
      loaded.wrong.push_back(set.error().message);
    }
  }
  if (loaded.config.cloud_nodes.empty()) {
    loaded.wrong.push_back(path.string() + ": nodes.cloud: must be given");
  }
  return loaded;
}

}  // namespace acb::cloud

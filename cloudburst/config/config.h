// SPDX-License-Identifier: Apache-2.0
// autocloud.toml: the one file that the daemon, the hooks, the command line and the job_submit
// plugin read. One row per key; an unknown key or a value out of range is an error that names it.
#pragma once

#include "base/result.h"
#include "base/settings.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace acb::cloud {

struct Config {
  std::string cluster;  ///< in idempotency keys and tags; letters, digits, '_' and '-'

  int max_nodes = 64;  ///< largest N of --autocloud-burst
  std::string default_partition = "batch";
  std::string own_feature = "onprem";
  std::string cloud_feature = "cloud";
  std::vector<std::string> gpu_types = {"v100-32gb", "a100-80gb", "h100-80gb"};
  std::string market = "spot";  ///< of a job that names none: spot or on-demand

  std::map<std::string, std::string> twins;  ///< partition to its burst twin

  std::string cloud_nodes;   ///< the State=CLOUD nodes that are ours, as a hostlist
  int idle_release_s = 60;   ///< how long an unowned node is kept while a burst of its kind waits
  int boot_timeout_s = 300;  ///< from the answer to a create call to the registration

  std::string provider_url = "https://api.autocloud.com";
  std::string ca_file;
  std::string key_file;
  int gpus_per_node = 1;
  std::string max_price_per_hour;  ///< decimal, per instance; empty: none
  std::string image;
  std::filesystem::path user_data_template = "/etc/autocloud-burst/user-data.tmpl";

  std::string join_listen = "0.0.0.0:8543";
  std::string join_address;  ///< host:port that rented nodes reach; empty: this host and port

  /// Handed to joining nodes: a file that the daemon's user can read; empty: they bring their own.
  std::string munge_key_file = "/etc/autocloud-burst/munge.key";

  std::string resume_hook;  ///< the site's own programs for what is not ours; empty: none
  std::string suspend_hook;
  std::string resumefail_hook;
  std::string prolog_hook;

  std::filesystem::path state_folder = "/var/lib/autocloud-burst";
  std::filesystem::path spool_folder = "/var/spool/autocloud-burst";
  std::filesystem::path run_folder = "/run/autocloud-burst";

  /// The daemon's copy of the file that it has started with.
  [[nodiscard]] std::filesystem::path last_good() const { return state_folder / "autocloud.toml"; }
  [[nodiscard]] std::filesystem::path ledger() const { return state_folder / "ledger.db"; }
  [[nodiscard]] std::filesystem::path inbox() const { return spool_folder / "inbox"; }
  [[nodiscard]] std::filesystem::path socket() const { return run_folder / "autocloudd.sock"; }
};

/// Where every program looks unless told otherwise: hooks get no environment from Slurm.
inline constexpr const char* kConfigPath = "/etc/autocloud-burst/autocloud.toml";

/// The table of keys: name, help, how to set and show it.
[[nodiscard]] std::vector<Setting<Config>> config_rows();
/// Reads and checks the file. `not_found`, `denied`, or `invalid` with the key and what is allowed.
[[nodiscard]] Result<Config> load_config(const std::filesystem::path& path);
/// What the hooks need: nodes.cloud, [hooks] and [paths]. Whatever else is wrong in the file must
/// not switch off the site's own programs; the daemon tells of it.
struct HookConfig {
  Config config;
  std::vector<std::string> wrong;  ///< what could not be read of these, in words
};
/// Where `path` is no TOML, what `fallback` says counts.
[[nodiscard]] HookConfig load_hook_config(const std::filesystem::path& path,
                                          const std::filesystem::path& fallback);
/// The checks that need more than one key or none given.
[[nodiscard]] Status check_config(const Config& config);

}  // namespace acb::cloud

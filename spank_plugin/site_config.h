// SPDX-License-Identifier: Apache-2.0
// The part of autocloud.toml that job_submit needs: [burst] and [twins]. The daemon checks the
// whole file; here other tables and keys are passed over.
#pragma once

#include "spank_plugin/options.h"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace acb::spank {

struct SiteConfig {
  Limits limits{.max_nodes = 64,
                .gpu_types = {"v100-32gb", "a100-80gb", "h100-80gb"}};  ///< first type = default
  Market market = Market::spot;
  std::string default_partition = "batch";
  std::string own_feature = "onprem";
  std::string cloud_feature = "cloud";
  std::map<std::string, std::string, std::less<>> twins;  ///< partition to its burst twin

  [[nodiscard]] bool is_twin(std::string_view partition) const;
};

/// `invalid` names the key, the value and what is allowed.
[[nodiscard]] Result<SiteConfig> parse_site_config(std::string_view what, std::string_view text);

/// What is known of the site's settings now.
struct Site {
  std::optional<SiteConfig> config;  ///< the last that could be read, if any ever could
  std::string error;                 ///< why the file cannot be read now; empty: `config` is it
};

/// Reads the file again only when its times, size or inode changed: one stat(2) else. Thread-safe.
class SiteFile {
 public:
  explicit SiteFile(std::filesystem::path path) : path_(std::move(path)) {}
  /// `changed` tells whether the file was read anew.
  [[nodiscard]] Site current(bool* changed = nullptr);

 private:
  struct Stamp {
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;  ///< chmod moves this one alone
    off_t size = -1;
    ino_t inode = 0;
    int error_number = 0;
    bool operator==(const Stamp&) const = default;
  };
  [[nodiscard]] Stamp stamp() const;

  const std::filesystem::path path_;
  std::mutex mutex_;
  std::optional<Stamp> seen_;
  Site site_;
};

}  // namespace acb::spank

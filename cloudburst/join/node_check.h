// SPDX-License-Identifier: Apache-2.0
// The gate before slurmd: a rented node that is not what was ordered, or whose clock munge would
// not accept, must not join.
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace acb::cloud {

struct CheckOptions {
  std::string url;                     ///< the join service; empty: the clock is not checked
  std::filesystem::path ca_file;       ///< its pinned certificate
  std::chrono::seconds most_skew{60};  ///< munge itself refuses above 300 s
  int gpus = 0;  ///< least device files that must match gpu_devices; 0: not checked
  std::string gpu_devices = "/dev/nvidia[0-9]*";  ///< a shell pattern
  int memory_mib = 0;                             ///< least memory; 0: not checked
  std::string conf_server;  ///< HOST[:PORT] that must accept a connection; empty: not checked
  /// The join service and the controller are asked again for so long: either may be restarting.
  std::chrono::seconds patience{60};
};

struct CheckResult {
  std::string name;  ///< clock, gpus, memory or controller
  bool ok = false;
  std::string found;   ///< in words
  std::string wanted;  ///< in words
};

/// All checks that were asked for; each try of one lasts at most 10 s.
[[nodiscard]] std::vector<CheckResult> check_node(const CheckOptions& options);
/// {"ok", "checks": [{"name", "ok", "found", "wanted"}]}
[[nodiscard]] Json check_report(const std::vector<CheckResult>& results);

}  // namespace acb::cloud

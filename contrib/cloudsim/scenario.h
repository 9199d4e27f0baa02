// SPDX-License-Identifier: Apache-2.0
// What the simulated cloud has to rent and how it behaves, from a TOML file. README.md lists every
// key.
#pragma once

#include "base/settings.h"
#include "cloudsim/faults.h"
#include "cloudsim/market.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace acb::sim {

struct Scenario {
  std::uint64_t seed = 1;
  std::string currency = "USD";
  Distribution call_latency_s;      ///< before every call
  Distribution allocate_latency_s;  ///< and while an allocate is carried out
  Distribution boot_s;              ///< from accepted until the boot command starts
  Distribution release_s;           ///< from a release until its instance is gone, at least
  Distribution list_delay_s;        ///< until lists show an allocation; at most 60 s counts
  std::string boot_command;         ///< for /bin/sh; empty: instances come up by themselves
  std::string destroy_command;      ///< for /bin/sh; empty: none
  std::map<std::string, std::int64_t> quota;  ///< GPUs by type; a type not named has no limit
  std::vector<OfferSpec> offers;              ///< by offer_id
  std::vector<FaultRule> faults;              ///< by name
};

/// `invalid` names the file, the key, the value and what is allowed.
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view what, const RawSettings& raw);
/// A row for each key, for documentation: those of the top level, of an offer and of a fault.
[[nodiscard]] std::vector<Flag> scenario_keys();

}  // namespace acb::sim

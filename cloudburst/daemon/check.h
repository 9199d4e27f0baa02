// SPDX-License-Identifier: Apache-2.0
// What an admin wants to know before the daemon runs: whether the configuration fits Slurm and the
// cloud, and what would be rented. Asks, and changes nothing.
#pragma once

#include "base/result.h"
#include "cloudburst/config/config.h"
#include "cloudburst/http/secret.h"
#include "cloudburst/plan/view.h"
#include "cloudburst/provider/provider.h"
#include "cloudburst/slurm/slurm_client.h"

#include <map>
#include <string>
#include <vector>

namespace acb::cloud {

/// Where slurm.conf does not fit autocloud.toml, one line each. On the thread of the client.
[[nodiscard]] std::vector<std::string> faults_of_site(
    const SlurmClient& client,
    const std::map<std::string, std::string>& twins,
    const SlurmPicture& picture);

struct Findings {
  std::vector<std::string> facts;
  std::vector<std::string> faults;
};
/// The offers that a burst of default kind may take, cheapest first.
[[nodiscard]] Findings findings_of_offers(const std::vector<Offer>& offers,
                                          const Config& config,
                                          const Policy& policy);
/// Everything. Reads slurm.conf, which ends the process where that makes no sense.
[[nodiscard]] Findings check_all(const Config& config, const Policy& policy, Secret key);

}  // namespace acb::cloud

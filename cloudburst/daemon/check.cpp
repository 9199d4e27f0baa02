// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/check.h"

#include "base/text.h"
#include "cloudburst/daemon/compose.h"
#include "cloudburst/slurm/hostlist.h"
#include "cloudburst/slurm/twins.h"

#include <algorithm>
#include <utility>

namespace acb::cloud {

namespace {

template <typename T>
bool note(Findings& found, const Result<T>& result) {
  if (!result) {
    found.faults.push_back(result.error().message);
  }
  return result.has_value();
}

void check_cloud(Findings& found, const Config& config, const Policy& policy, Secret key) {
  Provider::Options options;
  options.url = config.provider_url;
  options.ca_file = config.ca_file;
  options.call_limit = std::chrono::seconds(10);
  const auto provider = Provider::open(options, std::move(key));
  if (!note(found, provider)) {
    return;
  }
  const auto offers = provider->offers("");
  if (!offers) {
    found.faults.push_back("provider.url: " + config.provider_url + ": " +
                           describe(offers.error()));
    return;
  }
  Findings of_offers = findings_of_offers(*offers, config, policy);
  found.facts.insert(found.facts.end(), of_offers.facts.begin(), of_offers.facts.end());
  found.faults.insert(found.faults.end(), of_offers.faults.begin(), of_offers.faults.end());
}

void check_slurm(Findings& found, const Config& config) {
  const auto nodes = expand_hosts(config.cloud_nodes);
  if (!note(found, nodes)) {
    return;
  }
  SlurmClient client = SlurmClient::open(*nodes);
  const auto picture = client.load();
  if (!note(found, picture)) {
    return;
  }
  found.facts.push_back("slurm: " + std::to_string(picture->nodes.size()) + " of " +
                        std::to_string(nodes->size()) + " nodes of " + config.cloud_nodes);
  const std::vector<std::string> faults = faults_of_site(client, config.twins, *picture);
  found.faults.insert(found.faults.end(), faults.begin(), faults.end());
}

}  // namespace

std::vector<std::string> faults_of_site(const SlurmClient& client,
                                        const std::map<std::string, std::string>& twins,
                                        const SlurmPicture& picture) {
  std::vector<std::string> lines;
  if (const auto missing = client.missing(picture); !missing.empty()) {
    lines.push_back("nodes.cloud: " + join(missing, ", ") +
                    ": not in slurm.conf; no job can get them");
  }
  const auto faults = check_twins(twins);
  if (faults) {
    lines.insert(lines.end(), faults->begin(), faults->end());
  } else {
    lines.push_back(faults.error().message);
  }
  return lines;
}

Findings findings_of_offers(const std::vector<Offer>& offers,
                            const Config& config,
                            const Policy& policy) {
  Findings found;
  std::vector<Offer> fit;
  for (const Offer& offer : offers) {
    const bool is_ours =
        std::count(config.gpu_types.begin(), config.gpu_types.end(), offer.gpu_type) != 0 &&
        offer.gpus_per_instance == policy.gpus_per_node;
    if (is_ours && (!policy.max_price || offer.price_per_hour <= *policy.max_price)) {
      fit.push_back(offer);
    }
  }
  std::stable_sort(fit.begin(), fit.end(), [](const Offer& a, const Offer& b) {
    return a.price_per_hour < b.price_per_hour;
  });
  found.facts.push_back("cloud: " + std::to_string(offers.size()) + " offers, of which " +
                        std::to_string(fit.size()) + " may be taken");
  for (const Offer& offer : fit) {
    found.facts.push_back("  " + offer.offer_id + ": " + offer.gpu_type + ", " +
                          std::string(name_of(offer.market)) + ", " +
                          format_money(offer.price_per_hour) + " " + offer.currency + " an hour");
  }
  const bool has_default = std::any_of(fit.begin(), fit.end(), [&](const Offer& offer) {
    return offer.gpu_type == policy.default_gpu && offer.market == policy.default_market;
  });
  if (!has_default) {
    found.faults.push_back(
        "no offer fits a burst that names neither GPU nor market: " + policy.default_gpu + ", " +
        std::string(name_of(policy.default_market)) + ", " + std::to_string(policy.gpus_per_node) +
        " GPUs an instance" +
        (policy.max_price ? ", at most " + format_money(*policy.max_price) + " an hour"
                          : std::string()));
  }
  return found;
}

Findings check_all(const Config& config, const Policy& policy, Secret key) {
  Findings found;
  found.facts.push_back("cluster: " + config.cluster + ", in tags and idempotency keys");
  for (const auto& [partition, twin] : config.twins) {
    found.facts.push_back("twin: bursts of partition " + partition + " run in " + twin);
  }
  if (const auto sound = check_template(config); !sound) {
    found.faults.push_back(sound.error().message);
  }
  check_cloud(found, config, policy, std::move(key));
  check_slurm(found, config);
  return found;
}

}  // namespace acb::cloud

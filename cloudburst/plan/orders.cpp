// SPDX-License-Identifier: Apache-2.0
// What the hooks told. A resume order needs nothing but this look: who owns a node is read from the
// jobs. Suspend and resumefail say that Slurm takes the node for off: whatever is rented under its
// name is given back.
#include "cloudburst/plan/draft.h"

namespace acb::cloud {

namespace {

void take_back(Draft& draft, const HookOrder& order, const std::string& host) {
  const Lease* lease = draft.live_lease(host);
  // An order that waited while the daemon was down says nothing of what was rented since.
  if (lease == nullptr || lease->created >= order.at) {
    return;
  }
  const std::string key = lease->key;
  const BurstId owner = lease->owner;
  const Burst* burst = draft.burst(owner);
  if (order.kind == "resumefail" && burst != nullptr && burst->state == BurstState::open) {
    draft.fail_burst(owner, host + " did not register within Slurm's ResumeTimeout", std::nullopt);
  }
  draft.give_back(key, order.kind == "suspend" ? "suspended by Slurm" : "resume failed in Slurm");
}

}  // namespace

void plan_orders(Draft& draft) {
  for (const auto& [name, order] : draft.view.book->orders) {
    if (order.kind != "resume") {
      for (const std::string& host : order.hosts) {
        take_back(draft, order, host);
      }
    }
    draft.close_order(order);
  }
}

}  // namespace acb::cloud

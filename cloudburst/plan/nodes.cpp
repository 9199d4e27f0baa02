// SPDX-License-Identifier: Apache-2.0
// Slurm's nodes: their addresses, what the cloud took away, what a failed burst leaves, and the way
// back to "idle~".
#include "cloudburst/plan/draft.h"

#include <algorithm>
#include <utility>

namespace acb::cloud {

namespace {

constexpr std::string_view kReasonMark = "autocloud: ";
/// A node without a lease and a job is looked at this long before it is switched off.
constexpr std::chrono::seconds kUnownedWait{5};

bool is_off(const SlurmNode& node) {
  return node.powered_down || node.powering_down;
}

/// DOWN for a reason that we or Slurm's power saving gave: an admin's own is left alone.
bool is_ours_to_mend(const SlurmNode& node) {
  for (const std::string_view reason : {kReasonMark,
                                        std::string_view("ResumeTimeout reached"),
                                        std::string_view("Not responding"),
                                        std::string_view("Node unexpectedly rebooted")}) {
    if (node.reason.find(reason) != std::string::npos) {
      return true;
    }
  }
  return node.reason.empty();
}

bool is_taken(const Draft& draft, const Lease& lease) {
  return lease.lost || (lease.reclaim && *lease.reclaim <= draft.now);
}

/// Slurm learns of a loss at once instead of after SlurmdTimeout; a job without kill_on_node_fail
/// shrinks. A configuring job would be requeued: its burst is given up with a reason instead.
void lose(Draft& draft, const SlurmNode& node, const Lease& lease) {
  const SlurmJob* owner = draft.owner(node.name);
  const std::string key = lease.key;
  const std::string how = how_it_went(lease);
  if (owner != nullptr && owner->phase == JobPhase::configuring && !node.powering_up) {
    const Burst* burst = draft.burst(burst_id(*owner));
    if (burst != nullptr && burst->state == BurstState::open) {
      draft.fail_burst(
          burst->id, node.name + ": " + how + ", while the others booted", std::nullopt);
    }
  } else if (owner != nullptr && owner->phase == JobPhase::running && !node.down) {
    const bool fresh = draft.call(
        {.kind = CallKind::set_down, .nodes = {node.name}, .text = std::string(kReasonMark) + how});
    if (fresh) {
      draft.event(owner->id, node.name, "lost: " + how);
    }
  }
  draft.give_back(key, how);
}

void see_to_lease(Draft& draft, const SlurmNode& node) {
  const Lease* lease = draft.live_lease(node.name);
  if (lease == nullptr) {
    // Taken and already confirmed gone between two looks.
    const Lease* last = draft.newest_lease(node.name);
    const SlurmJob* owner = draft.owner(node.name);
    if (last != nullptr && last->lost && owner != nullptr && owner->phase == JobPhase::running) {
      lose(draft, node, *last);
    }
    return;
  }
  if (lease->lost && lease->state == LeaseState::releasing) {
    lose(draft, node, *lease);
    return;
  }
  if (lease->state != LeaseState::booting && lease->state != LeaseState::up) {
    return;
  }
  if (is_taken(draft, *lease)) {
    lose(draft, node, *lease);
    return;
  }
  const bool slurm_gave_up =
      node.down && node.powered_down && draft.view.slurm->at > lease->created;
  if (slurm_gave_up) {
    const BurstId owner = lease->owner;
    const std::string key = lease->key;
    if (const Burst* burst = draft.burst(owner);
        burst != nullptr && burst->state == BurstState::open) {
      draft.fail_burst(
          owner, node.name + " was powered down by Slurm: " + node.reason, std::nullopt);
    }
    draft.give_back(key, "Slurm has powered the node down");
    return;
  }
  // A node that has registered has told its address itself, which may lie inside a tunnel.
  if (!lease->address.empty() && node.address != lease->address && node.powering_up &&
      !is_off(node)) {
    draft.call({.kind = CallKind::set_address, .nodes = {node.name}, .text = lease->address});
  }
}

/// Switches off the nodes of a given-up burst: the configuring job is requeued (or ends). Other
/// jobs on a node are spared.
void clear_failed(Draft& draft) {
  for (const Draft::Labelled& labelled : draft.bursting_jobs()) {
    const BurstId id = burst_id(*labelled.job);
    const Burst* burst = draft.burst(id);
    if (labelled.job->phase != JobPhase::configuring || burst == nullptr ||
        burst->state != BurstState::failed) {
      continue;
    }
    std::vector<std::string> nodes;
    for (const std::string& name : labelled.job->nodes) {
      const SlurmNode* node = draft.slurm_node(name);
      if (node != nullptr && !is_off(*node) && draft.is_all_of(name, id)) {
        nodes.push_back(name);
      }
    }
    if (!nodes.empty()) {
      draft.call({.kind = CallKind::power_down_force,
                  .nodes = std::move(nodes),
                  .text = std::string(kReasonMark) + burst->reason});
    }
  }
}

/// Whether an unused node that is not off should be switched off now.
bool is_to_switch_off(const Draft& draft, const SlurmNode& node) {
  if (node.down && !is_ours_to_mend(node)) {
    return false;
  }
  const Lease* lease = draft.live_lease(node.name);
  if (lease != nullptr) {
    return lease->state == LeaseState::releasing;
  }
  if (const Lease* last = draft.newest_lease(node.name);
      last != nullptr && last->closed && draft.now - *last->closed < kUnownedWait) {
    return true;
  }
  const auto since = draft.view.unowned->find(node.name);
  return since != draft.view.unowned->end() && draft.now - since->second >= kUnownedWait;
}

void mend(Draft& draft, std::vector<std::string>& off, std::vector<std::string>& resume) {
  for (const SlurmNode& node : draft.view.slurm->nodes) {
    const bool used =
        draft.owner(node.name) != nullptr || node.allocated || draft.is_completing_on(node.name);
    if (used) {
      continue;
    }
    if (!is_off(node) && is_to_switch_off(draft, node)) {
      off.push_back(node.name);
    } else if (node.down && node.powered_down && is_ours_to_mend(node) &&
               draft.live_lease(node.name) == nullptr) {
      resume.push_back(node.name);
    }
  }
}

}  // namespace

void plan_nodes(Draft& draft) {
  if (draft.view.slurm == nullptr) {
    return;
  }
  for (const SlurmNode& node : draft.view.slurm->nodes) {
    see_to_lease(draft, node);
  }
  clear_failed(draft);
  std::vector<std::string> off;
  std::vector<std::string> resume;
  mend(draft, off, resume);
  if (!off.empty()) {
    draft.call({.kind = CallKind::power_down_force,
                .nodes = std::move(off),
                .text = std::string(kReasonMark) + "given back"});
  }
  if (!resume.empty()) {
    draft.call({.kind = CallKind::resume, .nodes = std::move(resume)});
  }
}

}  // namespace acb::cloud

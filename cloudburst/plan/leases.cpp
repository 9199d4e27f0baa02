// SPDX-License-Identifier: Apache-2.0
// Drives each lease one step: the create call, its look-up, the boot, the release.
#include "cloudburst/plan/draft.h"
#include "cloudburst/provider/retry.h"

namespace acb::cloud {

namespace {

/// How long a list or get() may be old before the lease is asked for by its id: the list may lack
/// what is younger than 60 s.
constexpr std::chrono::milliseconds kBootCheck{1000};
constexpr std::chrono::milliseconds kUpCheck{3000};
/// A release that was accepted and has not ended is sent again.
constexpr std::chrono::seconds kReleaseAgain{30};

/// Nothing new is rented for jobs that were last seen longer ago: slurmctld may be down.
constexpr std::chrono::seconds kStale{30};

bool may_create(const Draft& draft, const Lease& lease) {
  return lease.owner.job != 0 && draft.view.slurm != nullptr &&
         draft.now - draft.view.slurm->at <= kStale;
}

bool is_busy(const Draft& draft, const std::string& key) {
  return draft.is_busy("lease " + key);
}

void create(Draft& draft, const std::string& key) {
  Lease& lease = draft.edit(key);
  lease.state = LeaseState::creating;
  lease.unanswered = true;
  lease.sent = draft.now;
  ++lease.tries;
  draft.call({.kind = CallKind::create, .key = key});
}

void step_wanted(Draft& draft, const std::string& key) {
  const Lease& lease = *draft.find(key);
  // A row without its request has not been written down yet.
  const bool is_written = draft.view.book->leases.contains(key) && !lease.request.empty();
  if (is_written && may_create(draft, lease)) {
    create(draft, key);
  }
}

void step_creating(Draft& draft, const std::string& key) {
  const Lease& lease = *draft.find(key);
  if (lease.tries >= kCreateTries && (!lease.unanswered || lease.tries > kCreateTries)) {
    const BurstId owner = lease.owner;
    const std::string reason =
        std::to_string(kCreateTries) + " tries to rent " + lease.node + ": " + lease.error;
    if (draft.burst(owner) != nullptr) {
      draft.fail_burst(owner, reason, lease.error_class);
    }
    draft.give_back(key, reason);
    return;
  }
  if (lease.next_try >= lease.deadline && !lease.unanswered) {
    // Told to wait for longer than a boot may take: own nodes must not stand idle meanwhile.
    const BurstId owner = lease.owner;
    const std::string reason = "renting " + lease.node + ": " + lease.error;
    if (draft.burst(owner) != nullptr) {
      draft.fail_burst(owner, reason, lease.error_class, lease.next_try);
    }
    draft.give_back(key, reason);
    return;
  }
  if (draft.now < lease.next_try) {
    return;
  }
  if (lease.unanswered) {
    draft.call({.kind = CallKind::look_up, .key = key});
  } else if (may_create(draft, lease)) {
    create(draft, key);
  }
}

bool is_registered(const Draft& draft, const Lease& lease) {
  const SlurmNode* node = draft.slurm_node(lease.node);
  return node != nullptr && draft.view.slurm->at > lease.created && !node->powering_up &&
         !node->powered_down && !node->powering_down && !node->down && node->responding;
}

void check(Draft& draft, const std::string& key, std::chrono::milliseconds period) {
  const Lease& lease = *draft.find(key);
  if (draft.now >= lease.next_try && draft.now - lease.checked >= period) {
    draft.call({.kind = CallKind::get, .key = key, .text = lease.allocation_id});
  }
}

void step_booting(Draft& draft, const std::string& key) {
  const Lease& lease = *draft.find(key);
  if (!lease.lost && is_registered(draft, lease)) {
    Lease& edited = draft.edit(key);
    edited.state = LeaseState::up;
    edited.up = draft.now;
    draft.event(lease.owner.job, lease.node, "registered");
    return;
  }
  if (draft.now >= lease.deadline) {
    const BurstId owner = lease.owner;
    const std::string reason = name_of_boot(lease) + " did not register within " +
                               std::to_string(draft.policy.boot_timeout.count()) + " s";
    if (const Burst* burst = draft.burst(owner);
        burst != nullptr && burst->state == BurstState::open) {
      draft.fail_burst(owner, reason, std::nullopt);
    }
    draft.give_back(key, reason);
    return;
  }
  check(draft, key, kBootCheck);
}

void close_unmade(Draft& draft, const std::string& key) {
  Lease& lease = draft.edit(key);
  lease.state = LeaseState::gone;
  lease.closed = draft.now;
  lease.unanswered = false;
  lease.request.clear();
  lease.secret_sha256.clear();
  draft.event(lease.made_for.job, lease.node, "closed: the cloud never made it");
}

void step_releasing(Draft& draft, const std::string& key) {
  const Lease& lease = *draft.find(key);
  if (lease.allocation_id.empty()) {
    // Never asked whether it exists, or a create call may still be on its way.
    if (lease.checked >= lease.sent + draft.policy.settle) {
      close_unmade(draft, key);
    } else if (draft.now >= lease.next_try) {
      draft.call({.kind = CallKind::look_up, .key = key});
    }
    return;
  }
  if (draft.now < lease.next_try) {
    return;
  }
  if (!lease.accepted || draft.now - lease.sent >= kReleaseAgain) {
    draft.call({.kind = CallKind::release, .key = key, .text = lease.allocation_id});
  } else if (draft.now - lease.checked >= kBootCheck || lease.checked < lease.sent) {
    draft.call({.kind = CallKind::get, .key = key, .text = lease.allocation_id});
  }
}

}  // namespace

std::string name_of_boot(const Lease& lease) {
  std::string name =
      lease.node + " (" + (lease.instance_id.empty() ? lease.allocation_id : lease.instance_id) +
      ", rented at " + format_time(lease.billed_from.value_or(lease.created)).substr(0, 19) + "Z";
  if (!lease.request_id.empty()) {
    name += ", request " + lease.request_id;
  }
  return name + ")";
}

std::string how_it_went(const Lease& lease) {
  return lease.lost && !lease.error.empty() ? lease.error
                                            : "the cloud took back " + lease.instance_id;
}

void plan_leases(Draft& draft) {
  for (const std::string& key : std::vector<std::string>(draft.live_keys())) {
    if (is_busy(draft, key)) {
      continue;
    }
    switch (draft.find(key)->state) {
      case LeaseState::wanted:
        step_wanted(draft, key);
        break;
      case LeaseState::creating:
        step_creating(draft, key);
        break;
      case LeaseState::booting:
        step_booting(draft, key);
        break;
      case LeaseState::up:
        check(draft, key, kUpCheck);
        break;
      case LeaseState::releasing:
        step_releasing(draft, key);
        break;
      case LeaseState::gone:
        break;
    }
  }
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// What the cloud bills under our tag and no live lease stands for: written down first, then adopted
// where its burst is there to use it, else given back.
#include "cloudburst/plan/draft.h"
#include "cloudburst/plan/outcomes.h"

#include <algorithm>
#include <utility>

namespace acb::cloud {

namespace {

/// Nothing of a stale list may undo what happened since it was asked for.
bool is_settled_since(const Lease& lease, WallTime asked) {
  return lease.closed && *lease.closed >= asked;
}

std::uint32_t tag_number(const Allocation& allocation, const char* tag) {
  const auto found = allocation.tags.find(tag);
  if (found == allocation.tags.end()) {
    return 0;
  }
  return static_cast<std::uint32_t>(
      parse_integer(tag, found->second, 0, std::int64_t{1} << 32).value_or(0));
}

std::string tag_text(const Allocation& allocation, const char* tag) {
  const auto found = allocation.tags.find(tag);
  return found == allocation.tags.end() ? std::string() : found->second;
}

Lease lease_of(const Draft& draft, const Allocation& allocation) {
  Lease lease;
  lease.node = tag_text(allocation, "node");
  lease.attempt = tag_number(allocation, "attempt");
  lease.made_for.job = tag_number(allocation, "job");
  lease.made_for.restart = tag_number(allocation, "restart");
  const auto key = idempotency_key({draft.policy.cluster,
                                    lease.made_for.job,
                                    lease.made_for.restart,
                                    lease.node,
                                    lease.attempt});
  const bool is_named = !lease.node.empty() && lease.made_for.job != 0 && key;
  lease.key = is_named ? *key : "orphan/" + allocation.allocation_id;
  lease.gpu_type = allocation.gpu_type;
  lease.market = allocation.market;
  lease.offer_id = allocation.offer_id;
  lease.created = draft.now;
  lease.deadline = draft.now + draft.policy.boot_timeout;
  return lease;
}

/// Whether its burst still waits for this very machine.
bool can_adopt(const Draft& draft, const Lease& lease, const Allocation& allocation) {
  const SlurmJob* job = draft.owner(lease.node);
  return job != nullptr && job->id == lease.made_for.job &&
         job->restart == lease.made_for.restart && draft.bursting_job(burst_id(*job)) != nullptr &&
         draft.live_lease(lease.node) == nullptr &&
         (allocation.status == AllocationStatus::pending ||
          allocation.status == AllocationStatus::running);
}

void take_in(Draft& draft, Lease lease, const Allocation& allocation) {
  const bool adopt = can_adopt(draft, lease, allocation);
  if (adopt) {
    lease.made_for = burst_id(*draft.owner(lease.node));
    lease.owner = lease.made_for;
    lease.state = LeaseState::booting;
  } else {
    lease.state = LeaseState::releasing;
  }
  draft.event(lease.made_for.job,
              lease.node,
              (adopt ? "adopted: " : "giving back: ") + allocation.allocation_id +
                  " was rented without a live lease");
  lease.next_try = draft.now;
  lease = observe(std::move(lease), allocation, draft.now);
  if (draft.find(lease.key) != nullptr) {
    draft.edit(lease.key) = std::move(lease);
  } else {
    draft.add(std::move(lease));
  }
}

void reopen(Draft& draft, const Lease& gone, const Allocation& allocation) {
  Lease lease = gone;
  lease.state = LeaseState::releasing;
  lease.closed.reset();
  lease.owner = {};
  lease.accepted = false;
  lease.next_try = draft.now;
  draft.event(lease.made_for.job,
              lease.node,
              "giving back: " + allocation.allocation_id + " lives on after its lease was closed");
  draft.edit(gone.key) = observe(std::move(lease), allocation, draft.now);
}

/// A machine that came and went behind the back of its closed row: its bill is written there.
void book(Draft& draft, const Lease& gone, const Allocation& allocation) {
  Lease lease = gone;
  lease.state = LeaseState::releasing;
  draft.event(lease.made_for.job,
              lease.node,
              "billed: " + allocation.allocation_id + " was rented after all, and is over");
  draft.edit(gone.key) = observe(std::move(lease), allocation, draft.now);
}

void look_at(Draft& draft, const Allocation& allocation, WallTime asked) {
  Lease named = lease_of(draft, allocation);
  const Lease* lease = draft.find(named.key);
  if (lease != nullptr && !lease->allocation_id.empty() &&
      lease->allocation_id != allocation.allocation_id) {
    named.key = "orphan/" + allocation.allocation_id;
    lease = draft.find(named.key);
  }
  if (lease != nullptr && lease->is_live()) {
    if (lease->checked < asked && !draft.is_busy("lease " + named.key)) {
      draft.edit(named.key) = observe(*lease, allocation, draft.now);
    }
  } else if (allocation.is_over()) {
    if (lease != nullptr && lease->allocation_id.empty()) {
      book(draft, *lease, allocation);
    }
  } else if (lease == nullptr) {
    take_in(draft, std::move(named), allocation);
  } else if (!is_settled_since(*lease, asked)) {
    reopen(draft, *lease, allocation);
  }
}

}  // namespace

void plan_orphans(Draft& draft) {
  const CloudPicture& cloud = *draft.view.cloud;
  // Who owns what is unknown before Slurm has been seen.
  if (draft.view.slurm != nullptr && cloud.listed_at && cloud.list_is_new) {
    for (const Allocation& allocation : cloud.listed) {
      look_at(draft, allocation, *cloud.listed_at);
    }
  }
  const bool has_live =
      std::any_of(draft.live_keys().begin(), draft.live_keys().end(), [&](const std::string& key) {
        return !draft.find(key)->allocation_id.empty();
      });
  const auto period = has_live ? std::chrono::milliseconds(1000) : std::chrono::milliseconds(15000);
  if (!cloud.list_asked || draft.now - *cloud.list_asked >= period) {
    draft.call({.kind = CallKind::list});
  }
}

}  // namespace acb::cloud

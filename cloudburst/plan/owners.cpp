// SPDX-License-Identifier: Apache-2.0
// Whom each lease serves, read from the jobs in Slurm: a node left booting by a cancelled job is
// given to the next one without a resume order. What nobody owns is given back.
#include "cloudburst/plan/draft.h"

#include <algorithm>

namespace acb::cloud {

namespace {

/// When what is paid for ends: the least billed time, then every full granule.
WallTime paid_until(const Lease& lease, WallTime now) {
  const WallTime from = lease.billed_from.value_or(lease.created);
  const WallTime least = from + std::chrono::minutes(lease.minimum_min);
  if (now < least) {
    return least;
  }
  const std::int64_t granule = std::max(lease.granularity_s, 1);
  const auto used = std::chrono::duration_cast<std::chrono::seconds>(now - from).count();
  return from + std::chrono::seconds((used / granule + 1) * granule);
}

/// A burst that waits in the queue and could run on the lease's machine.
bool is_awaited(const Draft& draft, const Lease& lease) {
  const auto soon = draft.now + std::chrono::seconds(5);
  return std::any_of(draft.bursting_jobs().begin(),
                     draft.bursting_jobs().end(),
                     [&](const Draft::Labelled& entry) {
                       return entry.job->phase == JobPhase::pending && !entry.job->held &&
                              entry.job->begin.value_or(draft.now) <= soon &&
                              entry.label.gpu_type == lease.gpu_type &&
                              entry.market == lease.market;
                     });
}

void serve(Draft& draft, const std::string& key, const SlurmJob& job) {
  const BurstId id = burst_id(job);
  const Draft::Labelled* labelled = draft.bursting_job(id);
  const Lease& old = *draft.find(key);
  const BurstId wanted = labelled == nullptr ? BurstId{} : id;
  if (old.owner == wanted && !old.idle) {
    return;
  }
  if (labelled != nullptr &&
      (labelled->label.gpu_type != old.gpu_type || labelled->market != old.market)) {
    if (!draft.is_all_of(old.node, id)) {
      return;  // somebody else's job is on it
    }
    draft.give_back(key, "job " + std::to_string(job.id) + " wants another kind of machine");
    return;
  }
  if (labelled != nullptr && old.owner.job != 0 && old.owner != wanted) {
    draft.event(job.id, old.node, "taken over from job " + std::to_string(old.owner.job));
  }
  Lease& lease = draft.edit(key);
  lease.owner = wanted;
  lease.idle.reset();
  if (lease.state == LeaseState::booting || lease.state == LeaseState::creating) {
    lease.deadline = std::max(lease.deadline, draft.now + draft.policy.boot_timeout);
  }
}

void idle(Draft& draft, const std::string& key) {
  if (!draft.find(key)->idle || draft.find(key)->owner.job != 0) {
    Lease& lease = draft.edit(key);
    // As seen, not as written: the ledger may be full.
    const auto since = draft.view.unowned->find(lease.node);
    lease.idle =
        since == draft.view.unowned->end() ? draft.now : std::max(since->second, lease.created);
    lease.owner = {};
  }
  const Lease& lease = *draft.find(key);
  const auto waited = draft.now - *lease.idle;
  if (lease.reclaim) {
    draft.give_back(key, "the cloud takes it back soon");
  } else if (!is_awaited(draft, lease)) {
    if (waited >= draft.policy.unowned_grace) {
      draft.give_back(key, "nobody uses it");
    }
  } else if (waited >= draft.policy.idle_release &&
             draft.now + draft.policy.unowned_grace >= paid_until(lease, *lease.idle)) {
    draft.give_back(key, "idle, and its paid time is used");
  }
}

}  // namespace

void plan_owners(Draft& draft) {
  if (draft.view.slurm == nullptr) {
    return;
  }
  for (const std::string& key : std::vector<std::string>(draft.live_keys())) {
    const Lease& lease = *draft.find(key);
    const bool serves = lease.state != LeaseState::releasing && lease.state != LeaseState::gone;
    if (!serves || lease.created > draft.view.slurm->at) {
      continue;
    }
    if (const SlurmJob* job = draft.owner(lease.node)) {
      serve(draft, key, *job);
    } else if (!draft.is_completing_on(lease.node) || lease.state != LeaseState::up) {
      idle(draft, key);
    }
  }
}

}  // namespace acb::cloud

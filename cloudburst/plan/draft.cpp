// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/plan/draft.h"

#include <algorithm>
#include <utility>

namespace acb::cloud {

namespace {

bool holds_nodes(const SlurmJob& job) {
  return job.phase == JobPhase::configuring || job.phase == JobPhase::running;
}

std::chrono::seconds doubled(std::chrono::seconds delay, int times, std::chrono::seconds most) {
  for (int i = 0; i < times && delay < most; ++i) {
    delay *= 2;
  }
  return std::min(delay, most);
}

/// 30 s, 60 s, 120 s, ...: the 121 s of Slurm's own hold never grow. `paid`: the tries among them
/// for which machines were rented that did not come up.
std::chrono::seconds delay_after(int fails,
                                 int paid,
                                 std::optional<ErrorClass> cls,
                                 const Policy& policy) {
  if (cls == ErrorClass::quota || cls == ErrorClass::auth || cls == ErrorClass::bad_request) {
    return policy.last_delay;
  }
  if (!cls && paid > policy.most_paid) {
    return doubled(policy.last_delay, paid - policy.most_paid, policy.longest_delay);
  }
  return doubled(policy.first_delay, fails - 1, policy.last_delay);
}

}  // namespace

BurstId burst_id(const SlurmJob& job) {
  return {job.id, job.restart, job.submit};
}

Draft::Draft(const View& the_view, const Policy& the_policy)
    : view(the_view), policy(the_policy), now(the_view.now) {
  for (const auto& [key, lease] : view.book->leases) {
    by_node_[lease.node].push_back(key);
    if (lease.is_live()) {
      live_.push_back(key);
    }
  }
  if (view.slurm != nullptr) {
    index_jobs();
  }
}

void Draft::index_jobs() {
  for (const SlurmNode& node : view.slurm->nodes) {
    nodes_[node.name] = &node;
  }
  for (const SlurmJob& job : view.slurm->jobs) {
    if (auto label = parse_label(job.admin_comment)) {
      if (label->gpu_type.empty()) {
        label->gpu_type = policy.default_gpu;
      }
      const Market market = label->market.value_or(policy.default_market);
      labelled_.push_back({&job, std::move(*label), market});
    }
    if (job.phase == JobPhase::pending || job.phase == JobPhase::ended) {
      continue;
    }
    for (const std::string& node : job.nodes) {
      if (!nodes_.contains(node)) {
        continue;
      }
      jobs_on_[node].push_back(&job);
    }
  }
}

const Draft::Labelled* Draft::bursting_job(const BurstId& id) const {
  const auto found = std::find_if(labelled_.begin(), labelled_.end(), [&](const Labelled& entry) {
    return burst_id(*entry.job) == id;
  });
  return found == labelled_.end() ? nullptr : &*found;
}

const SlurmJob* Draft::owner(const std::string& node) const {
  const auto found = jobs_on_.find(node);
  if (found == jobs_on_.end()) {
    return nullptr;
  }
  const Lease* lease = live_lease(node);
  const SlurmJob* owner = nullptr;
  for (const SlurmJob* job : found->second) {
    if (holds_nodes(*job) &&
        (owner == nullptr || (lease != nullptr && burst_id(*job) == lease->owner))) {
      owner = job;
    }
  }
  return owner;
}

bool Draft::is_completing_on(const std::string& node) const {
  const auto found = jobs_on_.find(node);
  return found != jobs_on_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [](const SlurmJob* job) {
           return job->phase == JobPhase::completing;
         });
}

bool Draft::is_all_of(const std::string& node, const BurstId& id) const {
  const auto found = jobs_on_.find(node);
  return found == jobs_on_.end() ||
         std::all_of(found->second.begin(), found->second.end(), [&](const SlurmJob* job) {
           return burst_id(*job) == id;
         });
}

const SlurmNode* Draft::slurm_node(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second;
}

const Lease* Draft::find(const std::string& key) const {
  if (const auto edited = leases_.find(key); edited != leases_.end()) {
    return &edited->second;
  }
  const auto found = view.book->leases.find(key);
  return found == view.book->leases.end() ? nullptr : &found->second;
}

const Lease* Draft::live_lease(const std::string& node) const {
  const Lease* releasing = nullptr;
  const auto keys = by_node_.find(node);
  if (keys == by_node_.end()) {
    return nullptr;
  }
  for (const std::string& key : keys->second) {
    const Lease* lease = find(key);
    if (lease->state == LeaseState::releasing) {
      releasing = lease;
    } else if (lease->is_live()) {
      return lease;
    }
  }
  return releasing;
}

const Lease* Draft::newest_lease(const std::string& node) const {
  const Lease* newest = nullptr;
  const auto keys = by_node_.find(node);
  if (keys != by_node_.end()) {
    for (const std::string& key : keys->second) {
      const Lease* lease = find(key);
      if (newest == nullptr || lease->created >= newest->created) {
        newest = lease;
      }
    }
  }
  return newest;
}

std::vector<const Lease*> Draft::leases_made_for(const BurstId& id, const std::string& node) const {
  std::vector<const Lease*> made;
  if (const auto keys = by_node_.find(node); keys != by_node_.end()) {
    for (const std::string& key : keys->second) {
      if (const Lease* lease = find(key); lease->made_for == id) {
        made.push_back(lease);
      }
    }
  }
  std::sort(made.begin(), made.end(), [](const Lease* a, const Lease* b) {
    return a->attempt < b->attempt;
  });
  return made;
}

std::vector<const Lease*> Draft::all_leases() const {
  std::vector<const Lease*> all;
  for (const auto& [node, keys] : by_node_) {
    for (const std::string& key : keys) {
      all.push_back(find(key));
    }
  }
  return all;
}

Lease& Draft::edit(const std::string& key) {
  const auto edited = leases_.find(key);
  return edited != leases_.end() ? edited->second
                                 : leases_.emplace(key, view.book->leases.at(key)).first->second;
}

Lease& Draft::add(Lease lease) {
  const std::string key = lease.key;
  by_node_[lease.node].push_back(key);
  live_.push_back(key);
  return leases_.emplace(key, std::move(lease)).first->second;
}

void Draft::give_back(const std::string& key, std::string_view why) {
  Lease& lease = edit(key);
  if (lease.state == LeaseState::releasing || lease.state == LeaseState::gone) {
    return;
  }
  const bool never_made = lease.allocation_id.empty() && !lease.unanswered && !lease.doubtful;
  lease.unanswered = lease.allocation_id.empty() && !never_made;
  lease.state = never_made ? LeaseState::gone : LeaseState::releasing;
  if (never_made) {
    lease.closed = now;
    lease.request.clear();
  }
  if (never_made || !lease.allocation_id.empty()) {
    lease.secret_sha256.clear();  // else a later burst may ask again under the same key
  }
  lease.accepted = false;
  lease.tries = 0;
  lease.next_try = now;
  event(lease.owner.job != 0 ? lease.owner.job : lease.made_for.job,
        lease.node,
        (never_made ? "not rented: " : "giving back: ") + std::string(why));
}

const Burst* Draft::burst(const BurstId& id) const {
  if (const auto edited = bursts_.find(id); edited != bursts_.end()) {
    return &edited->second;
  }
  const auto found = view.book->bursts.find(id);
  return found == view.book->bursts.end() ? nullptr : &found->second;
}

Burst& Draft::edit_burst(const BurstId& id) {
  const auto edited = bursts_.find(id);
  return edited != bursts_.end() ? edited->second
                                 : bursts_.emplace(id, view.book->bursts.at(id)).first->second;
}

Burst& Draft::add_burst(Burst burst) {
  const BurstId id = burst.id;
  return bursts_.emplace(id, std::move(burst)).first->second;
}

int Draft::paid_tries(const Burst& burst) const {
  std::set<std::uint32_t> starts;
  for (const Lease* lease : all_leases()) {
    const BurstId& made_for = lease->made_for;
    const bool in_a_row = made_for.job == burst.id.job && made_for.restart <= burst.id.restart &&
                          std::cmp_less(burst.id.restart - made_for.restart, burst.fails);
    if (in_a_row && !lease->allocation_id.empty() && !lease->up) {
      starts.insert(made_for.restart);
    }
  }
  return static_cast<int>(starts.size());
}

void Draft::fail_burst(const BurstId& id,
                       std::string reason,
                       std::optional<ErrorClass> cls,
                       WallTime not_before) {
  Burst& burst = edit_burst(id);
  if (burst.state == BurstState::failed) {
    return;
  }
  burst.state = BurstState::failed;
  ++burst.fails;
  burst.reason = std::move(reason);
  // Whole seconds: Slurm knows no others, and what it shows is compared with this.
  burst.retry_at = std::chrono::ceil<std::chrono::seconds>(
      std::max(now + delay_after(burst.fails, paid_tries(burst), cls, policy), not_before));
  event(id.job, "", "burst given up: " + burst.reason);
  for (const std::string& key : std::vector<std::string>(live_)) {
    const Lease& lease = *find(key);
    // Another job on it keeps the machine, and gets the lease once this one has left.
    if (lease.owner == id && is_all_of(lease.node, id)) {
      give_back(key, "its burst was given up");
    }
  }
}

void Draft::close_order(HookOrder order) {
  order.done = true;
  plan_.changes.orders.push_back(std::move(order));
}

bool Draft::is_busy(const std::string& subject) const {
  return view.busy->contains(subject) || planned_.contains(subject);
}

bool Draft::call(Call call) {
  const std::string subject = call.subject();
  if (is_busy(subject)) {
    return false;
  }
  planned_.insert(subject);
  plan_.calls.push_back(std::move(call));
  return true;
}

void Draft::event(std::uint32_t job, std::string node, std::string text) {
  plan_.changes.events.push_back({now, job, std::move(node), std::move(text)});
}

Plan Draft::finish() {
  for (auto& [key, lease] : leases_) {
    const auto old = view.book->leases.find(key);
    if (old == view.book->leases.end()) {
      plan_.changes.leases.push_back(lease);
    } else {
      plan_.changes.add(old->second, lease);
    }
  }
  for (auto& [id, burst] : bursts_) {
    const auto old = view.book->bursts.find(id);
    if (old == view.book->bursts.end() || !(old->second == burst)) {
      plan_.changes.bursts.push_back(burst);
    }
  }
  plan_.moving = plan_.moving || !plan_.calls.empty() || !plan_.changes.empty() ||
                 std::any_of(live_.begin(),
                             live_.end(),
                             [&](const std::string& key) {
                               const Lease* lease = find(key);
                               return lease->is_live() &&
                                      (lease->state != LeaseState::up || lease->owner.job == 0);
                             }) ||
                 std::any_of(labelled_.begin(), labelled_.end(), [](const Labelled& entry) {
                   return entry.job->phase == JobPhase::configuring ||
                          entry.job->phase == JobPhase::completing;
                 });
  return std::move(plan_);
}

}  // namespace acb::cloud

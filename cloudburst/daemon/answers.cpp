// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/answers.h"

#include "cloudburst/plan/label.h"

#include <algorithm>
#include <map>

namespace acb::cloud {

namespace {

Json time_or_null(std::optional<WallTime> time) {
  return time ? Json(format_time(*time)) : Json();
}
Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

WallTime since_of(const Lease& lease) {
  if (lease.closed) {
    return *lease.closed;
  }
  return lease.state == LeaseState::up && lease.up ? *lease.up : lease.created;
}

/// Live leases are billed by what the cloud last said.
Json node_of_burst(const Lease& lease) {
  return {{"node", lease.node},
          {"state", name_of(lease.state)},
          {"instance", text_or_null(lease.instance_id)},
          {"address", text_or_null(lease.address)},
          {"gpu_type", lease.gpu_type},
          {"market", name_of(lease.market)},
          {"price_per_hour", format_money(lease.price_per_hour)},
          {"reserved", format_money(lease.is_live() ? lease.reserved : Money())},
          {"cost", format_money(lease.cost)},
          {"currency", lease.currency},
          {"since", format_time(since_of(lease))}};
}

/// When the last of the burst's nodes registered; nullopt until all have.
std::optional<WallTime> registered_at(const Burst& burst, const std::vector<const Lease*>& leases) {
  std::map<std::string, WallTime> nodes;
  for (const Lease* lease : leases) {
    if (lease->up) {
      WallTime& at = nodes.try_emplace(lease->node, *lease->up).first->second;
      at = std::max(at, *lease->up);
    }
  }
  if (nodes.empty() || nodes.size() < static_cast<std::size_t>(burst.nodes)) {
    return std::nullopt;
  }
  return std::max_element(nodes.begin(),
                          nodes.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

const char* burst_state(const Burst& burst, const std::vector<const Lease*>& leases) {
  const auto any = [&](LeaseState state) {
    return std::any_of(
        leases.begin(), leases.end(), [&](const Lease* lease) { return lease->state == state; });
  };
  switch (burst.state) {
    case BurstState::started:
      return "running";
    case BurstState::failed:
      return "waiting";
    case BurstState::ended:
      return std::any_of(
                 leases.begin(), leases.end(), [](const Lease* lease) { return lease->is_live(); })
                 ? "releasing"
                 : "over";
    case BurstState::open:
      break;
  }
  if (any(LeaseState::wanted) || any(LeaseState::creating)) {
    return "renting";
  }
  return leases.empty() || !burst.configuring ? "waiting" : "booting";
}

Json burst_answer(const Snapshot& snapshot, const Burst& burst, const UserName& name_of_user) {
  std::vector<const Lease*> leases;
  Money cost;
  Json nodes = Json::array();
  std::string currency;
  for (const auto& [key, lease] : snapshot.book.leases) {
    if (lease.owner != burst.id && lease.made_for != burst.id) {
      continue;
    }
    leases.push_back(&lease);
    if (lease.made_for == burst.id) {  // one that was taken over is paid by its first job
      cost += lease.cost;
    }
    currency = lease.currency;
    nodes.push_back(node_of_burst(lease));
  }
  // A job that waits for its next try: the time stands with the start that failed.
  std::optional<WallTime> next_try = burst.retry_at;
  if (burst.id.restart > 0 && burst.state == BurstState::open && !burst.told.empty()) {
    if (const Burst* last = snapshot.book.start_before(burst.id)) {
      next_try = last->retry_at;
    }
  }
  const std::string& reason = burst.reason.empty() ? burst.told : burst.reason;
  std::string waits;
  if (snapshot.slurm) {
    for (const SlurmJob& job : snapshot.slurm->jobs) {
      waits = job.id == burst.id.job ? job.waits : waits;
    }
  }
  return {{"job", burst.id.job},
          {"restart", burst.id.restart},
          {"user", name_of_user(burst.uid)},
          {"state", burst_state(burst, leases)},
          {"wanted", burst.nodes},
          {"reason", reason.empty() ? Json() : Json{{"text", reason}}},
          {"slurm_reason", text_or_null(waits)},
          {"next_try", time_or_null(next_try)},
          {"failures", burst.fails},
          {"opened_at", format_time(burst.opened)},
          {"allocated_at", time_or_null(burst.configuring)},
          {"registered_at", time_or_null(registered_at(burst, leases))},
          {"started_at", time_or_null(burst.started)},
          {"cost", format_money(cost)},
          {"currency", currency},
          {"nodes", std::move(nodes)}};
}

uid_t user_of(const Snapshot& snapshot, const Lease& lease) {
  const auto burst = snapshot.book.bursts.find(lease.made_for);
  return burst == snapshot.book.bursts.end() ? uid_t{0} : burst->second.uid;
}

std::string slurm_state(const SlurmNode& node) {
  std::string text = node.down ? "down" : node.allocated ? "alloc" : "idle";
  if (node.powered_down) {
    text += '~';
  } else if (node.powering_up) {
    text += '#';
  } else if (node.powering_down) {
    text += '%';
  }
  return node.responding ? text : text + '*';
}

bool has_node(const SlurmJob& job, const std::string& name) {
  return std::find(job.nodes.begin(), job.nodes.end(), name) != job.nodes.end();
}

/// Whether the job may use the node: it is on, and its machine is this job's.
bool is_ready(const Book& book, const SlurmJob& job, const SlurmNode& node) {
  if (node.powering_up || node.powered_down || node.powering_down) {
    return false;
  }
  const BurstId id{job.id, job.restart, job.submit};
  return std::any_of(book.leases.begin(), book.leases.end(), [&](const auto& entry) {
    const Lease& lease = entry.second;
    return lease.node == node.name && lease.owner == id && lease.is_live() &&
           lease.state != LeaseState::releasing;
  });
}

}  // namespace

Result<Json> status_answer(const Snapshot& snapshot,
                           std::optional<std::uint32_t> job,
                           const Asker& asker,
                           const UserName& name_of_user) {
  // Of each job the present start alone: rows are in the order of restarts.
  std::map<std::uint32_t, const Burst*> newest;
  for (const auto& [id, burst] : snapshot.book.bursts) {
    if (asker.sees(burst.uid) && (!job || *job == id.job)) {
      newest[id.job] = &burst;
    }
  }
  if (job && newest.empty()) {
    return fail(ErrorCode::not_found, "job " + std::to_string(*job) + ": no burst of yours");
  }
  Json bursts = Json::array();
  for (const auto& [id, burst] : newest) {
    if (job || burst->state != BurstState::ended) {
      bursts.push_back(burst_answer(snapshot, *burst, name_of_user));
    }
  }
  return Json{{"bursts", std::move(bursts)}};
}

Json leases_answer(const Snapshot& snapshot, const Asker& asker, const UserName& name_of_user) {
  Json leases = Json::array();
  for (const auto& [key, lease] : snapshot.book.leases) {
    const uid_t uid = user_of(snapshot, lease);
    if (!asker.sees(uid)) {
      continue;
    }
    leases.push_back({{"lease", key},
                      {"job", lease.made_for.job},
                      {"restart", lease.made_for.restart},
                      {"user", name_of_user(uid)},
                      {"node", lease.node},
                      {"attempt", lease.attempt},
                      {"state", name_of(lease.state)},
                      {"instance", text_or_null(lease.instance_id)},
                      {"offer", lease.offer_id},
                      {"gpu_type", lease.gpu_type},
                      {"market", name_of(lease.market)},
                      {"price_per_hour", format_money(lease.price_per_hour)},
                      {"reserved", format_money(lease.is_live() ? lease.reserved : Money())},
                      {"error", text_or_null(lease.error)},
                      {"from", time_or_null(lease.billed_from)},
                      {"to", time_or_null(lease.billed_until)},
                      {"billed_s", lease.billed_s},
                      {"cost", format_money(lease.cost)},
                      {"currency", lease.currency}});
  }
  return {{"leases", std::move(leases)}};
}

Json nodes_answer(const Snapshot& snapshot, const Asker& asker) {
  std::map<std::string, const Lease*> live;
  for (const auto& [key, lease] : snapshot.book.leases) {
    if (lease.is_live()) {
      const Lease*& kept = live[lease.node];
      if (kept == nullptr || kept->state == LeaseState::releasing) {
        kept = &lease;
      }
    }
  }
  Json nodes = Json::array();
  if (snapshot.slurm) {
    for (const SlurmNode& node : snapshot.slurm->nodes) {
      const auto found = live.find(node.name);
      const Lease* lease = found == live.end() ? nullptr : found->second;
      const bool shown = lease != nullptr && asker.sees(user_of(snapshot, *lease));
      const bool owned = shown && lease->owner.job != 0;
      nodes.push_back({{"node", node.name},
                       {"state", lease == nullptr ? "off" : std::string(name_of(lease->state))},
                       {"slurm", slurm_state(node)},
                       {"job", owned ? Json(lease->owner.job) : Json()},
                       {"restart", owned ? Json(lease->owner.restart) : Json()},
                       {"instance", shown ? text_or_null(lease->instance_id) : Json()},
                       {"address", shown ? text_or_null(lease->address) : Json()},
                       {"since", shown ? Json(format_time(since_of(*lease))) : Json()}});
    }
  }
  return {{"nodes", std::move(nodes)}};
}

Json prolog_answer(const Snapshot& snapshot,
                   std::uint32_t job,
                   std::int64_t restart,
                   WallTime asked) {
  if (!snapshot.slurm || snapshot.slurm->at <= asked) {
    return {{"go", false}, {"restart", restart}};
  }
  const SlurmPicture& slurm = *snapshot.slurm;
  const auto found = std::find_if(
      slurm.jobs.begin(), slurm.jobs.end(), [&](const SlurmJob& seen) { return seen.id == job; });
  if (found == slurm.jobs.end() || !parse_label(found->admin_comment) ||
      (restart >= 0 && found->restart != restart)) {
    return {{"go", true}, {"restart", restart}};
  }
  const bool go = found->phase != JobPhase::configuring ||
                  std::all_of(slurm.nodes.begin(), slurm.nodes.end(), [&](const SlurmNode& node) {
                    return !has_node(*found, node.name) || is_ready(snapshot.book, *found, node);
                  });
  return {{"go", go}, {"restart", found->restart}};
}

}  // namespace acb::cloud

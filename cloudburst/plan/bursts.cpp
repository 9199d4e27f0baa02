// SPDX-License-Identifier: Apache-2.0
// Bursts: opened when seen in Slurm, started or given up as a whole, and their jobs' start time and
// comment.
#include "base/lost_host.h"
#include "cloudburst/plan/draft.h"

#include <algorithm>
#include <utility>

namespace acb::cloud {

namespace {

/// The user is told what a boot waits for once it takes longer than this: well within a minute of
/// the submit, whatever the site's limit for boots is.
constexpr std::chrono::seconds kLongBoot{30};
/// So many late nodes are told by name.
constexpr std::size_t kMostNamed = 4;

const Burst* before(const Draft& draft, const BurstId& id) {
  const Burst* last = draft.view.book->start_before(id);
  return last == nullptr ? nullptr : draft.burst(last->id);
}

Burst& open(Draft& draft, const Draft::Labelled& labelled) {
  Burst burst;
  burst.id = burst_id(*labelled.job);
  burst.uid = labelled.job->uid;
  burst.nodes = labelled.label.burst;
  burst.gpu_type = labelled.label.gpu_type;
  burst.market = labelled.market;
  burst.opened = draft.now;
  burst.lifted = burst.id.restart == 0;  // a first start's time is its user's own
  if (const Burst* last = before(draft, burst.id);
      last != nullptr && last->state == BurstState::failed) {
    burst.fails = last->fails;
  }
  return draft.add_burst(std::move(burst));
}

std::string still_booting(const std::vector<const Lease*>& late, const Policy& policy) {
  std::vector<std::string> names;
  for (const Lease* lease : late) {
    if (names.size() == kMostNamed) {
      names.push_back(std::to_string(late.size() - kMostNamed) + " more");
      break;
    }
    names.push_back(name_of_boot(*lease));
  }
  return "still booting, not registered yet: " + join(names, ", ") + "; given up after " +
         std::to_string(policy.boot_timeout.count()) + " s";
}

/// What keeps the nodes of a booting burst, in words that do not change with every look.
std::string waiting_for(const Draft& draft, const Draft::Labelled& labelled, const Burst& burst) {
  std::string words = burst.reason;
  std::vector<const Lease*> late;
  for (const std::string& node : labelled.job->nodes) {
    if (!draft.is_ours(node)) {
      continue;
    }
    for (const Lease* made : draft.leases_made_for(burst.id, node)) {
      if (made->lost && words.empty()) {
        words = node + ": " + how_it_went(*made) + "; renting another";
      }
    }
    const Lease* lease = draft.live_lease(node);
    if (lease == nullptr) {
      continue;
    }
    if (lease->state == LeaseState::creating && lease->error_class && words.empty()) {
      words = "renting " + node + ": " + lease->error;
    }
    if (lease->state == LeaseState::booting && draft.now - lease->created > kLongBoot) {
      late.push_back(lease);
    }
    if (lease->state == LeaseState::releasing && lease->tries > 1) {
      words = node + ": its last machine is not given back yet: " + lease->error;
    }
  }
  if (words.empty() && !late.empty()) {
    words = still_booting(late, draft.policy);
  }
  if (const Burst* last = before(draft, burst.id);
      words.empty() && last != nullptr && last->state == BurstState::failed) {
    words = "trying again after: " + last->reason;
  }
  return words;
}

void tell(Draft& draft, const SlurmJob& job, Burst& burst, const std::string& words) {
  burst.told = words;
  const std::string comment = with_words(job.admin_comment, words);
  if (comment != job.admin_comment) {
    draft.call({.kind = CallKind::set_comment, .job = job.id, .text = comment});
  }
}

void configure(Draft& draft, const Draft::Labelled& labelled) {
  const BurstId id = burst_id(*labelled.job);
  if (draft.burst(id)->state == BurstState::open) {
    if (!draft.burst(id)->configuring) {
      draft.edit_burst(id).configuring = draft.now;
    }
    rent_for(draft, labelled);
  }
  Burst& burst = draft.edit_burst(id);
  tell(draft,
       *labelled.job,
       burst,
       burst.state == BurstState::failed ? burst.reason : waiting_for(draft, labelled, burst));
}

/// Whether the job's other nodes have said a moment ago that they no longer reach the batch host.
bool is_missed(const Draft& draft, const SlurmJob& job) {
  const auto lost = lost_host(job.comment);
  return lost && lost->restart == job.restart && lost->host == job.batch_host &&
         std::chrono::abs(draft.now - lost->at) <= draft.policy.lost_host_holds;
}

/// Slurm gives a node up after SlurmdTimeout, 300 s as a rule; and then, with kill_on_node_fail
/// off, lets a job without its batch host run on for ever. Two ways have to agree that a host is
/// lost before its time: from slurmctld and from the job's nodes. Either alone may be cut while the
/// job is well. Other jobs on the node are spared.
void watch_batch_host(Draft& draft, const SlurmJob& job) {
  if (!std::count(job.nodes.begin(), job.nodes.end(), job.batch_host)) {
    if (draft.call({.kind = CallKind::requeue, .job = job.id})) {
      draft.event(job.id, "", "requeued: its batch host " + job.batch_host + " is lost");
    }
    return;
  }
  if (!is_missed(draft, job)) {
    return;
  }
  draft.look_soon();
  const std::vector<BatchHost>& hosts = draft.view.slurm->batch_hosts;
  const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const BatchHost& candidate) {
    return candidate.name == job.batch_host;
  });
  if (host == hosts.end() || host->down || host->responding || host->shared) {
    return;
  }
  // Slurm's own words for such a node: with ReturnToService=1 it comes back by itself for no other.
  if (draft.call({.kind = CallKind::set_down, .nodes = {host->name}, .text = "Not responding"})) {
    draft.event(job.id, host->name, "set down: it answers neither slurmctld nor the job's nodes");
  }
}

void run(Draft& draft, const Draft::Labelled& labelled) {
  const SlurmJob& job = *labelled.job;
  Burst& burst = draft.edit_burst(burst_id(job));
  if (burst.state != BurstState::started) {
    burst.state = BurstState::started;
    burst.started = draft.now;
    burst.fails = 0;
    burst.reason.clear();
    draft.event(job.id, "", "started on " + std::to_string(job.nodes.size()) + " nodes");
  }
  tell(draft, job, burst, "");
  if (job.batch && !job.batch_host.empty()) {
    watch_batch_host(draft, job);
  }
}

/// A requeue brings Slurm's own hold of about two minutes. It is replaced once by what our own
/// failures ask for; a time that somebody sets later stands.
void wait_for_start(Draft& draft, const Draft::Labelled& labelled) {
  const SlurmJob& job = *labelled.job;
  Burst& burst = draft.edit_burst(burst_id(job));
  const Burst* last = before(draft, burst.id);
  const bool failed = last != nullptr && last->state == BurstState::failed && last->retry_at;
  if (!burst.lifted && !job.held) {
    const WallTime now_s = std::chrono::floor<std::chrono::seconds>(draft.now);
    const WallTime target = failed ? std::max(*last->retry_at, now_s) : now_s;
    const WallTime begin = job.begin.value_or(now_s);
    const bool right = failed ? begin == target || (begin <= target && target <= draft.now)
                              : begin <= draft.now + std::chrono::seconds(1);
    const bool wished = begin - job.submit > draft.policy.longest_hold;
    if (right || wished) {
      burst.lifted = true;
    } else {
      draft.call({.kind = CallKind::set_start, .job = job.id, .at = target});
    }
  }
  std::string words;
  if (failed) {
    words = last->reason + "; next try at " + format_time(*last->retry_at).substr(0, 19) + "Z";
  }
  tell(draft, job, burst, words);
}

/// Bursts whose job has left, ended or gone on to another restart.
void end_others(Draft& draft) {
  const SlurmPicture& slurm = *draft.view.slurm;
  std::map<std::uint32_t, const SlurmJob*> jobs;
  for (const SlurmJob& job : slurm.jobs) {
    jobs[job.id] = &job;
  }
  for (const auto& [id, old] : draft.view.book->bursts) {
    if (old.state == BurstState::ended || old.opened > slurm.at) {
      continue;
    }
    const auto found = jobs.find(id.job);
    const SlurmJob* job = found == jobs.end() ? nullptr : found->second;
    // The last failure is kept while its job waits: it holds the reason and the next try.
    const std::uint32_t keeps = draft.burst(id)->state == BurstState::failed ? 1 : 0;
    // Another submit time without a later start: the id of a wiped Slurm, used again.
    const bool other = job != nullptr && job->submit != id.submit && job->restart <= id.restart;
    if (job == nullptr || other || job->phase == JobPhase::ended ||
        job->restart > id.restart + keeps) {
      draft.edit_burst(id).state = BurstState::ended;
    }
  }
}

}  // namespace

void plan_bursts(Draft& draft) {
  if (draft.view.slurm == nullptr) {
    return;
  }
  for (const Draft::Labelled& labelled : draft.bursting_jobs()) {
    const SlurmJob& job = *labelled.job;
    if (job.phase == JobPhase::completing || job.phase == JobPhase::ended) {
      continue;
    }
    if (draft.burst(burst_id(job)) == nullptr) {
      open(draft, labelled);
    }
    if (job.phase == JobPhase::configuring) {
      configure(draft, labelled);
    } else if (job.phase == JobPhase::running) {
      run(draft, labelled);
    } else {
      wait_for_start(draft, labelled);
    }
  }
  end_others(draft);
}

}  // namespace acb::cloud

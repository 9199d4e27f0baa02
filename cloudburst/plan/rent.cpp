// SPDX-License-Identifier: Apache-2.0
// Opening leases for a burst whose nodes boot: which offer, at what price, or why not.
#include "cloudburst/plan/draft.h"
#include "cloudburst/provider/retry.h"

#include <algorithm>
#include <utility>

namespace acb::cloud {

namespace {

constexpr std::chrono::seconds kOffersFresh{15};
/// A burst waits this long for the list of offers, so that its user reads why within a minute.
constexpr std::chrono::seconds kOffersWait{45};
constexpr int kMostLosses = 3;

bool needs_a_person(ErrorClass cls) {
  return cls == ErrorClass::quota || cls == ErrorClass::auth || cls == ErrorClass::bad_request;
}

bool is_resting(const Draft& draft, const std::string& offer_id, std::string& why) {
  for (const Lease* lease : draft.all_leases()) {
    if (lease->offer_id == offer_id && lease->error_class == ErrorClass::no_capacity &&
        lease->closed && draft.now - *lease->closed < draft.policy.offer_rest) {
      why = lease->error;
      return true;
    }
  }
  return false;
}

struct Choice {
  const Offer* offer = nullptr;
  std::string why;  ///< where there is none
};

/// The cheapest that has enough for all, else the cheapest that has any.
Choice choose_offer(const Draft& draft, const Draft::Labelled& labelled, int missing) {
  Choice choice;
  const Policy& policy = draft.policy;
  std::string why = "no_capacity: nothing on offer for " + labelled.label.gpu_type + " (" +
                    std::string(name_of(labelled.market)) + ") with " +
                    std::to_string(policy.gpus_per_node) + " GPUs an instance";
  const auto enough = [&](const Offer& offer) {
    return offer.available.value_or(missing) >= missing;
  };
  for (const Offer& offer : draft.view.cloud->offers) {
    if (offer.gpu_type != labelled.label.gpu_type || offer.market != labelled.market ||
        offer.gpus_per_instance != policy.gpus_per_node) {
      continue;
    }
    if (policy.max_price && offer.price_per_hour > *policy.max_price) {
      why = "no_capacity: " + offer.offer_id + " costs " + format_money(offer.price_per_hour) +
            " an hour, above max_price_per_hour " + format_money(*policy.max_price);
      continue;
    }
    if (offer.available.value_or(1) < 1) {
      why = "no_capacity: " + offer.offer_id + " has none left";
      continue;
    }
    if (is_resting(draft, offer.offer_id, why)) {
      continue;
    }
    if (choice.offer == nullptr ||
        std::pair(!enough(offer), offer.price_per_hour) <
            std::pair(!enough(*choice.offer), choice.offer->price_per_hour)) {
      choice.offer = &offer;
    }
  }
  choice.why = std::move(why);
  return choice;
}

/// Whether the offers known are fresh; else asks for them, and gives the burst up where that fails
/// for good or for long.
bool know_offers(Draft& draft, const Burst& burst) {
  const CloudPicture& cloud = *draft.view.cloud;
  if (cloud.offers_at && draft.now - *cloud.offers_at < kOffersFresh) {
    return true;
  }
  if (draft.is_busy(Call{.kind = CallKind::offers}.subject())) {
    return false;  // the error known is that of an earlier question
  }
  if (!cloud.offers_error || !cloud.offers_asked) {
    draft.call({.kind = CallKind::offers});
    return false;
  }
  const CloudError& error = *cloud.offers_error;
  const WallTime since = burst.configuring.value_or(draft.now);
  const WallTime next =
      *cloud.offers_asked +
      retry_delay(cloud.offers_failed, error.cls, error.retry_after, draft.view.jitter01);
  const bool asked_for_it = *cloud.offers_asked >= since;
  // The cloud may have told an earlier burst to wait: that holds for this one too.
  const bool told_to_wait = error.retry_after && draft.now < next;
  if ((asked_for_it && needs_a_person(error.cls)) ||
      ((asked_for_it || told_to_wait) && std::max(draft.now, next) - since > kOffersWait)) {
    draft.fail_burst(burst.id, describe(error), error.cls, error.retry_after ? next : WallTime());
    return false;
  }
  if ((asked_for_it || told_to_wait) && burst.reason != describe(error)) {
    draft.edit_burst(burst.id).reason = describe(error);
  }
  if (draft.now >= next || !(asked_for_it || told_to_wait)) {
    draft.call({.kind = CallKind::offers});
  }
  return false;
}

/// Whether the node's last attempts speak against another one; then the burst is given up.
bool is_hopeless(Draft& draft, const Burst& burst, const std::string& node) {
  const std::vector<const Lease*> made = draft.leases_made_for(burst.id, node);
  if (made.empty()) {
    return false;
  }
  const Lease& last = *made.back();
  const auto losses =
      std::count_if(made.begin(), made.end(), [](const Lease* lease) { return lease->lost; });
  if (last.error_class && needs_a_person(*last.error_class)) {
    draft.fail_burst(burst.id, last.error, last.error_class);
  } else if (losses >= kMostLosses) {
    draft.fail_burst(burst.id,
                     node + " went away " + std::to_string(losses) +
                         " times before it registered, the last: " + how_it_went(last),
                     std::nullopt);
  } else if (std::cmp_greater_equal(made.size(), draft.policy.most_attempts)) {
    draft.fail_burst(
        burst.id,
        node + ": " + std::to_string(made.size()) + " attempts failed, the last: " + last.error,
        last.error_class);
  } else {
    return false;
  }
  return true;
}

void open_lease(Draft& draft,
                const Draft::Labelled& labelled,
                const std::string& node,
                const Offer& offer) {
  Lease lease;
  lease.made_for = burst_id(*labelled.job);
  lease.owner = lease.made_for;
  lease.node = node;
  const auto known =
      draft.view.book->attempts.find({lease.made_for.job, lease.made_for.restart, node});
  lease.attempt = known == draft.view.book->attempts.end() ? 1 : known->second + 1;
  const auto key = idempotency_key(
      {draft.policy.cluster, lease.made_for.job, lease.made_for.restart, node, lease.attempt});
  if (!key) {
    draft.fail_burst(lease.owner, key.error().message, ErrorClass::bad_request);
    return;
  }
  lease.key = *key;
  lease.gpu_type = offer.gpu_type;
  lease.market = offer.market;
  lease.offer_id = offer.offer_id;
  lease.price_per_hour = offer.price_per_hour;
  lease.currency = offer.currency;
  lease.minimum_min = offer.minimum_min;
  lease.granularity_s = offer.granularity_s;
  lease.reserved = reservation(
      offer.price_per_hour, labelled.job->time_limit, draft.policy.boot_timeout, offer.minimum_min);
  lease.created = draft.now;
  lease.next_try = draft.now;
  lease.deadline = draft.now + draft.policy.boot_timeout;
  draft.event(lease.owner.job,
              node,
              "renting " + offer.offer_id + " at " + format_money(offer.price_per_hour) +
                  " an hour, at most " + format_money(lease.reserved));
  draft.add(std::move(lease));
}

/// Why a node that is on in Slurm cannot serve its new job. `last`: its newest lease, if any.
std::string why_unusable(const Lease* last) {
  if (last != nullptr && last->lost) {
    return ": " + how_it_went(*last) + ", while the others booted";
  }
  if (last != nullptr && last->state == LeaseState::releasing) {
    return ": is still on, as a machine of an earlier job (" + last->gpu_type + ", " +
           std::string(name_of(last->market)) + "), and is given back first";
  }
  if (last != nullptr && last->is_live()) {
    return ": is the machine of job " + std::to_string(last->owner.job);
  }
  return ": is on in Slurm, but nothing is rented under its name";
}

/// Whether the node's only lease stands for a create call of an earlier burst whose outcome is not
/// known, and could serve this one.
bool may_take_up(const Draft& draft, const Draft::Labelled& labelled, const Lease& lease) {
  const auto on_node =
      std::count_if(draft.live_keys().begin(), draft.live_keys().end(), [&](const auto& key) {
        const Lease* other = draft.find(key);
        return other->is_live() && other->node == lease.node;
      });
  return on_node == 1 && lease.state == LeaseState::releasing && lease.allocation_id.empty() &&
         !lease.request.empty() && !lease.secret_sha256.empty() && lease.error_class &&
         is_worth_retrying(*lease.error_class) && lease.gpu_type == labelled.label.gpu_type &&
         lease.market == labelled.market && !draft.is_busy("lease " + lease.key);
}

/// Asks again under the key in doubt, which cannot make two machines, instead of waiting until no
/// machine can come of it any more.
void take_up(Draft& draft, const Draft::Labelled& labelled, const std::string& key) {
  Lease& lease = draft.edit(key);
  lease.state = LeaseState::creating;
  lease.owner = burst_id(*labelled.job);
  lease.idle.reset();
  lease.unanswered = true;
  lease.tries = 0;
  lease.next_try = draft.now;
  lease.created = draft.now;
  lease.deadline = draft.now + draft.policy.boot_timeout;
  draft.event(lease.owner.job,
              lease.node,
              "asking again for what job " + std::to_string(lease.made_for.job) +
                  " asked for without an answer");
}

/// The burst's nodes for which a lease has to be opened now. Gives the burst up where one cannot
/// be.
std::vector<std::string> missing_nodes(Draft& draft,
                                       const Burst& burst,
                                       const Draft::Labelled& labelled) {
  std::vector<std::string> missing;
  for (const std::string& node : labelled.job->nodes) {
    const SlurmNode* slurm = draft.slurm_node(node);
    const Lease* lease = draft.live_lease(node);
    const bool serves =
        lease != nullptr && lease->state != LeaseState::releasing && lease->owner == burst.id;
    if (slurm == nullptr || serves) {
      continue;
    }
    if (lease != nullptr && may_take_up(draft, labelled, *lease)) {
      take_up(draft, labelled, std::string(lease->key));
      continue;
    }
    if (!slurm->powering_up && !slurm->powered_down && !slurm->powering_down) {
      draft.fail_burst(burst.id, node + why_unusable(draft.newest_lease(node)), std::nullopt);
      return {};
    }
    if (lease != nullptr) {
      continue;  // rented anew once that machine is gone
    }
    if (is_hopeless(draft, burst, node)) {
      return {};
    }
    missing.push_back(node);
  }
  return missing;
}

/// What job_submit made sure of may have been changed since.
bool is_as_recorded(Draft& draft, const Draft::Labelled& labelled) {
  const SlurmJob& job = *labelled.job;
  const auto cloud_nodes =
      std::count_if(job.nodes.begin(), job.nodes.end(), [&](const std::string& node) {
        return draft.is_ours(node);
      });
  std::string wrong;
  if (job.time_limit.count() <= 0) {
    wrong = "the job has no time limit";
  } else if (cloud_nodes != labelled.label.burst) {
    wrong = "the job has " + std::to_string(cloud_nodes) + " cloud nodes, its record says " +
            std::to_string(labelled.label.burst);
  }
  if (!wrong.empty()) {
    draft.fail_burst(burst_id(job), "not rented: " + wrong, ErrorClass::bad_request);
  }
  return wrong.empty();
}

}  // namespace

void rent_for(Draft& draft, const Draft::Labelled& labelled) {
  const Burst burst = *draft.burst(burst_id(*labelled.job));
  if (!is_as_recorded(draft, labelled)) {
    return;
  }
  const std::vector<std::string> missing = missing_nodes(draft, burst, labelled);
  if (missing.empty() || !know_offers(draft, burst)) {
    return;
  }
  const Choice choice = choose_offer(draft, labelled, static_cast<int>(missing.size()));
  if (choice.offer == nullptr) {
    draft.fail_burst(burst.id, choice.why, ErrorClass::no_capacity);
    return;
  }
  for (const std::string& node : missing) {
    open_lease(draft, labelled, node, *choice.offer);
  }
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/plan/outcomes.h"

#include "cloudburst/provider/retry.h"

#include <algorithm>
#include <utility>

namespace acb::cloud {

namespace {

constexpr std::chrono::seconds kLookAgain{5};

bool is_ending(const Lease& lease) {
  return lease.state == LeaseState::releasing || lease.state == LeaseState::gone;
}

void close(Lease& lease, WallTime now) {
  lease.state = LeaseState::gone;
  lease.closed = now;
  lease.unanswered = false;
  lease.request.clear();
  lease.secret_sha256.clear();
}

/// The cloud made nothing for the last create call; an earlier one may still arrive.
void close_unmade(Lease& lease, WallTime now) {
  if (!lease.doubtful) {
    close(lease, now);
    return;
  }
  lease.state = LeaseState::releasing;
  lease.unanswered = true;
  lease.tries = 0;
  lease.next_try = now + kLookAgain;
}

void note(Lease& lease, const CloudError& error) {
  lease.error_class = error.cls;
  lease.error = describe(error);
}

/// Tries again later, for ever: what is billed is never given up.
void postpone(Lease& lease, const CloudError& error, WallTime now, double jitter01) {
  note(lease, error);
  ++lease.tries;
  lease.next_try = now + retry_delay(lease.tries, error.cls, error.retry_after, jitter01);
}

/// What the cloud ends without being asked by us was taken back, or switched off from inside.
void lose(Lease& lease, bool is_taken) {
  if (lease.lost) {
    return;
  }
  lease.lost = true;
  lease.error_class.reset();
  const std::string who = lease.instance_id.empty() ? lease.allocation_id : lease.instance_id;
  if (is_taken) {
    lease.error = "the cloud took back " + who;
  } else if (lease.up) {
    lease.error = who + " was switched off, and not by autocloudd";
  } else {
    lease.error = who +
                  " switched itself off before it registered: not let in, or its check failed "
                  "(its console and autocloudd's log tell which)";
  }
}

void observe_instance(Lease& lease, const Instance& instance) {
  lease.instance_id = instance.instance_id;
  if (!instance.address.empty()) {
    lease.address = instance.address;
  }
  lease.billed_from = instance.billed_from;
  lease.billed_until = instance.billed_until;
  lease.billed_s = instance.billed_s;
  lease.reclaim = instance.reclaim_at;
  const bool going = instance.status == InstanceStatus::lost ||
                     instance.status == InstanceStatus::released ||
                     instance.status == InstanceStatus::releasing;
  if (going && !is_ending(lease)) {
    lose(lease, instance.status == InstanceStatus::lost || instance.reclaim_at.has_value());
  }
}

}  // namespace

Lease observe(Lease lease, const Allocation& allocation, WallTime now) {
  if (lease.state == LeaseState::gone) {
    return lease;
  }
  lease.allocation_id = allocation.allocation_id;
  lease.price_per_hour = allocation.price_per_hour;
  if (!allocation.currency.empty()) {
    lease.currency = allocation.currency;
  }
  lease.granularity_s = allocation.granularity_s;
  lease.minimum_min = allocation.minimum_min;
  lease.cost = allocation.cost();
  lease.checked = now;
  if (lease.unanswered || lease.state == LeaseState::wanted ||
      lease.state == LeaseState::creating) {
    lease.unanswered = false;
    lease.tries = 0;
    lease.next_try = now;
    lease.request.clear();
    lease.request_id = allocation.request_id;
  }
  if (!is_ending(lease) && lease.state != LeaseState::up) {
    lease.state = LeaseState::booting;
  }
  if (!allocation.instances.empty()) {
    observe_instance(lease, allocation.instances.front());
  }
  const bool going = allocation.status == AllocationStatus::releasing ||
                     allocation.status == AllocationStatus::released ||
                     allocation.status == AllocationStatus::failed;
  if (going && !is_ending(lease)) {
    lose(lease, allocation.status == AllocationStatus::failed);
  }
  if (allocation.error) {
    note(lease, *allocation.error);
  }
  if (allocation.is_over()) {
    close(lease, now);
  }
  return lease;
}

Lease after_create(Lease lease,
                   const CloudResult<Allocation>& answer,
                   WallTime now,
                   double jitter01) {
  if (answer) {
    return observe(std::move(lease), *answer, now);
  }
  const CloudError& error = answer.error();
  note(lease, error);
  switch (error.cls) {
    case ErrorClass::throttled:
      lease.unanswered = false;
      lease.next_try = now + retry_delay(lease.tries, error.cls, error.retry_after, jitter01);
      if (is_ending(lease)) {
        close_unmade(lease, now);
      }
      break;
    case ErrorClass::ambiguous:
    case ErrorClass::conflict:
      lease.unanswered = true;
      lease.next_try = now;
      break;
    case ErrorClass::no_capacity:
    case ErrorClass::quota:
    case ErrorClass::auth:
    case ErrorClass::bad_request:
    case ErrorClass::gone:
      if (error.unsure) {
        lease.unanswered = true;
        lease.next_try = now;
      } else {
        close_unmade(lease, now);
      }
      break;
  }
  return lease;
}

Lease after_look_up(Lease lease,
                    const CloudResult<std::optional<Allocation>>& answer,
                    WallTime now,
                    double jitter01) {
  if (!answer) {
    postpone(lease, answer.error(), now, jitter01);
    return lease;
  }
  if (*answer) {
    return observe(std::move(lease), **answer, now);
  }
  lease.checked = now;
  if (is_ending(lease)) {
    // The call may still be on its way: plan() closes the lease once that is ruled out.
    lease.doubtful = true;
    lease.next_try = now + kLookAgain;
  } else if (lease.error_class == ErrorClass::conflict ||
             lease.error_class == ErrorClass::no_capacity) {
    close_unmade(lease, now);
  } else {
    lease.unanswered = false;
    lease.doubtful = true;
    lease.next_try =
        lease.sent +
        retry_delay(std::max(lease.tries, 1), ErrorClass::ambiguous, std::nullopt, jitter01);
  }
  return lease;
}

Lease after_get(Lease lease, const CloudResult<Allocation>& answer, WallTime now, double jitter01) {
  if (answer) {
    lease.tries = 0;
    lease.next_try = now;
    return observe(std::move(lease), *answer, now);
  }
  postpone(lease, answer.error(), now, jitter01);
  return lease;
}

Lease after_release(Lease lease,
                    const CloudResult<Provider::Released>& answer,
                    WallTime now,
                    double jitter01) {
  if (answer) {
    // Even "already gone" is read again with get(): the final bill is there.
    lease.accepted = true;
    lease.tries = 0;
    lease.sent = now;
    lease.next_try = now;
    return lease;
  }
  postpone(lease, answer.error(), now, jitter01);
  return lease;
}

Result<Lease> closed_by_hand(const Book& book, const std::string& key, WallTime now) {
  const auto found = book.leases.find(key);
  if (found == book.leases.end()) {
    return fail(ErrorCode::not_found,
                "lease '" + key + "': there is none; autocloud leases --json names them");
  }
  Lease lease = found->second;
  if (lease.state != LeaseState::releasing || lease.error_class != ErrorClass::gone) {
    return fail(ErrorCode::invalid,
                "lease '" + key + "': is " + std::string(name_of(lease.state)) +
                    (lease.error.empty() ? "" : " (" + lease.error + ")") +
                    ": only one that is being given back, and whose machine the cloud does not "
                    "know, can be closed");
  }
  close(lease, now);
  return lease;
}

}  // namespace acb::cloud

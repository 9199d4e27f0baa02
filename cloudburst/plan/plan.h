// SPDX-License-Identifier: Apache-2.0
// The heart: what to write down and what to do next, from the pictures alone. Pure: no clock, no
// file, no network, no randomness. The caller saves `changes` first, in one transaction, and only
// then starts `calls`; each call's outcome goes through outcomes.h. A crash at any point in between
// leaves a ledger from which plan() goes on.
#pragma once

#include "cloudburst/plan/view.h"

#include <string>
#include <vector>

namespace acb::cloud {

enum class CallKind {
  // To the cloud; `key` is the lease's.
  create,
  look_up,  ///< find the allocation by the idempotency key
  get,
  release,
  list,  ///< everything with our tag
  offers,
  // To Slurm.
  set_address,       ///< `nodes` has one
  set_down,          ///< with reason `text`: jobs on it shrink or are requeued at once
  power_down_force,  ///< ends every job on them; with reason `text`
  resume,            ///< DOWN to IDLE
  requeue,
  set_start,  ///< the job's earliest start: `at`
  set_comment,
};

struct Call {
  CallKind kind{};
  std::string key = {};
  std::uint32_t job = 0;
  std::vector<std::string> nodes = {};
  std::string text = {};  ///< of get and release: the allocation's id
  WallTime at = {};

  /// What it acts on. Of calls with the same subject one is under way at a time.
  [[nodiscard]] std::string subject() const;
  [[nodiscard]] bool is_slurm() const { return kind >= CallKind::set_address; }
  bool operator==(const Call&) const = default;
};
[[nodiscard]] std::string_view name_of(CallKind kind);

/// Whether it may be made though the plan's changes cannot be written: giving back what nobody uses
/// can only save money, and is noticed by get() and list() later.
[[nodiscard]] bool may_go_unwritten(CallKind kind);

struct Plan {
  Changes changes;
  std::vector<Call> calls;
  /// Anything is on its way to another state: look again soon.
  bool moving = false;
};

/// New leases come with an empty `request`: the caller composes the body (it needs a secret and the
/// site's template) before it saves.
[[nodiscard]] Plan plan(const View& view, const Policy& policy);

/// The most that a lease should come to: price x (time limit + boot + least billed time).
[[nodiscard]] Money reservation(Money price_per_hour,
                                std::chrono::seconds time_limit,
                                std::chrono::seconds boot_timeout,
                                int minimum_min);

}  // namespace acb::cloud

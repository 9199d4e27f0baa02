// SPDX-License-Identifier: Apache-2.0
// The rows of the ledger, as values: what we want, what we own and what happened. Pure.
#pragma once

#include "base/text.h"
#include "cloudburst/provider/errors.h"
#include "cloudburst/provider/types.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace acb::cloud {

/// A burst's identity. Slurm may use a job id again after its state was wiped, hence the submit
/// time.
struct BurstId {
  std::uint32_t job = 0;  ///< 0: nobody
  std::uint32_t restart = 0;
  WallTime submit{};
  auto operator<=>(const BurstId&) const = default;
};

enum class LeaseState {
  wanted,     ///< money reserved, nothing sent
  creating,   ///< a create call was sent, or is about to be
  booting,    ///< the cloud has accepted; not yet registered in Slurm
  up,         ///< registered in Slurm
  releasing,  ///< to be given back; closed only when the cloud has confirmed
  gone,       ///< the cloud has confirmed, or provably never made it
};
[[nodiscard]] std::string_view name_of(LeaseState state);
[[nodiscard]] Result<LeaseState> parse_lease_state(std::string_view text);

/// One rented node's life. Written before the first call that could cost money.
struct Lease {
  std::string key;   ///< idempotency key: cluster/job/restart/node/attempt
  BurstId made_for;  ///< the burst in the key
  std::string node;  ///< its name in Slurm
  std::uint32_t attempt = 0;
  BurstId owner;  ///< the burst that it serves now
  LeaseState state = LeaseState::wanted;

  std::string gpu_type;
  Market market = Market::on_demand;
  std::string offer_id;
  Money price_per_hour;
  std::string currency;
  int minimum_min = 0;
  int granularity_s = 1;
  Money reserved;  ///< the most it should come to: price x (time limit + boot + least billed time)

  std::string request;        ///< the exact body; wiped once answered, since a secret is in it
  std::string secret_sha256;  ///< of the one-time join secret; empty once used
  std::string allocation_id;
  std::string instance_id;
  std::string address;
  std::string request_id;  ///< of the answer by which we learned that it is rented

  int tries = 0;            ///< create calls and look-ups that failed or have no outcome yet
  bool unanswered = false;  ///< a create was sent and its outcome is unknown: look the key up
  bool doubtful =
      false;  ///< an earlier create may still arrive: not closed before that is ruled out
  bool accepted = false;  ///< the cloud has accepted the release
  WallTime sent{};        ///< the last create call
  WallTime next_try{};    ///< no call before this
  WallTime checked{};     ///< when the cloud last told about it
  WallTime created{};
  WallTime deadline{};  ///< has to be up by then
  std::optional<WallTime> up;
  std::optional<WallTime> idle;     ///< since when no burst owns it
  std::optional<WallTime> reclaim;  ///< the cloud takes it back then
  bool lost = false;                ///< the cloud took it, or it switched itself off

  std::optional<ErrorClass> error_class;
  std::string error;  ///< the last failure, in words

  std::optional<WallTime> billed_from;
  std::optional<WallTime> billed_until;
  std::int64_t billed_s = 0;
  Money cost;
  std::optional<WallTime> closed;

  [[nodiscard]] bool is_live() const { return state != LeaseState::gone; }
  bool operator==(const Lease&) const = default;
};

enum class BurstState {
  open,     ///< seen in Slurm; its nodes are being rented as long as its job is configuring
  started,  ///< its job runs
  failed,   ///< given up, with a reason; its job starts again at `retry_at`
  ended,    ///< its job has left Slurm, or was requeued
};
[[nodiscard]] std::string_view name_of(BurstState state);
[[nodiscard]] Result<BurstState> parse_burst_state(std::string_view text);

struct Burst {
  BurstId id;
  uid_t uid = 0;
  BurstState state = BurstState::open;
  int nodes = 0;
  std::string gpu_type;
  Market market = Market::on_demand;
  int fails = 0;        ///< failed bursts of this job in a row, this one included
  std::string reason;   ///< why it failed or waits, in words
  std::string told;     ///< what the job's admin comment should say after the record
  bool lifted = false;  ///< the hold that a requeue brings was dealt with
  WallTime opened{};
  std::optional<WallTime> configuring;  ///< since when its nodes boot
  std::optional<WallTime> started;
  std::optional<WallTime> retry_at;
  bool operator==(const Burst&) const = default;
};

/// What a hook told. Kept until done.
struct HookOrder {
  std::string name;  ///< its file in the inbox
  std::string kind;  ///< resume, suspend or resumefail
  std::vector<std::string> hosts;
  WallTime at{};
  bool done = false;
  bool operator==(const HookOrder&) const = default;
};

/// What happened, for people.
struct Event {
  WallTime at{};
  std::uint32_t job = 0;
  std::string node;
  std::string text;
};

/// Whether `next` is `old` but for what the cloud tells anew at every look: when that was, and the
/// bill so far. Written each time, these would keep a disk busy; they are written with the next
/// change of anything else.
[[nodiscard]] bool differs_in_figures_alone(const Lease& old, const Lease& next);

/// Rows to write in one transaction; existing ones are replaced.
struct Changes {
  std::vector<Lease> leases;
  std::vector<Burst> bursts;
  std::vector<HookOrder> orders;
  std::vector<Event> events;
  std::vector<Lease> figures;  ///< not written: leases that differ in figures alone
  /// A lease that was `old`, if it has changed.
  void add(const Lease& old, Lease next) {
    if (differs_in_figures_alone(old, next)) {
      figures.push_back(std::move(next));
    } else if (!(old == next)) {
      leases.push_back(std::move(next));
    }
  }
  /// Whether there is nothing to write.
  [[nodiscard]] bool empty() const {
    return leases.empty() && bursts.empty() && orders.empty() && events.empty();
  }
};

}  // namespace acb::cloud

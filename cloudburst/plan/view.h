// SPDX-License-Identifier: Apache-2.0
// What a decision is made from: three pictures (ledger, Slurm, cloud), the time, and the site's
// policy. Values only.
#pragma once

#include "cloudburst/ledger/ledger.h"
#include "cloudburst/provider/types.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace acb::cloud {

enum class JobPhase {
  pending,
  configuring,  ///< has its nodes, which boot
  running,
  completing,  ///< has ended, its nodes are being cleaned
  ended,
};

struct SlurmJob {
  std::uint32_t id = 0;
  std::uint32_t restart = 0;
  uid_t uid = 0;
  JobPhase phase = JobPhase::pending;
  bool held = false;  ///< priority 0: somebody wants it to wait
  std::string waits;  ///< why it is pending, in Slurm's words; "": not told
  bool batch = false;
  std::vector<std::string> nodes;  ///< allocated; empty while pending
  std::string batch_host;
  std::string admin_comment;
  std::string comment;  ///< the user's own
  WallTime submit{};
  std::optional<WallTime> begin;       ///< does not start before this
  std::chrono::seconds time_limit{0};  ///< 0: none
};

struct SlurmNode {
  std::string name;
  std::string address;
  std::string reason;
  bool down = false;
  bool allocated = false;      ///< some job has it, ours or not
  bool powered_down = false;   ///< "~"
  bool powering_up = false;    ///< "#": resumed, not yet registered
  bool powering_down = false;  ///< "%" or "!"
  bool responding = true;
};

/// An own node that runs the script of a burst.
struct BatchHost {
  std::string name;
  bool down = false;
  bool responding = true;  ///< to slurmctld
  bool shared = false;     ///< another job has it too
};

/// Nodes are loaded before jobs, so that a node that seems unowned was so at the earlier time.
struct SlurmPicture {
  std::vector<SlurmJob> jobs;
  std::vector<SlurmNode> nodes;  ///< only those that are ours
  std::vector<BatchHost> batch_hosts;
  WallTime at{};  ///< when loading began
};

struct CloudPicture {
  std::vector<Offer> offers;
  std::optional<WallTime> offers_at;     ///< of the last answer
  std::optional<WallTime> offers_asked;  ///< of the last question
  int offers_failed = 0;                 ///< in a row
  std::optional<CloudError> offers_error;

  std::vector<Allocation> listed;  ///< with our cluster's tag; young ones may be missing
  std::optional<WallTime> listed_at;
  bool list_is_new = false;  ///< not planned with yet, in sight of Slurm
  std::optional<WallTime> list_asked;
};

struct Policy {
  std::string cluster;
  std::string default_gpu;
  Market default_market = Market::spot;
  int gpus_per_node = 1;
  std::optional<Money> max_price;
  std::chrono::seconds idle_release{60};
  std::chrono::seconds boot_timeout{300};
  /// An unowned node that nobody waits for is given back after this: long enough for Slurm's
  /// scheduler to hand it to the next job, short against the 10 s promised.
  std::chrono::seconds unowned_grace{4};
  std::chrono::seconds first_delay{30};  ///< of a failed burst's job; doubles each time
  std::chrono::seconds last_delay{900};
  /// Tries that were paid for and came to nothing because machines did not come up: beyond so many,
  /// the delay goes on doubling up to a day. An image that never boots must not rent for ever.
  int most_paid = 5;
  std::chrono::seconds longest_delay{86400};
  /// A requeue holds a job for the life of a credential and a second (AuthInfo=cred_expire, 120 s).
  /// A start later than this after the submit is somebody's wish.
  std::chrono::seconds longest_hold{125};
  /// After "no capacity"; not longer than the first delay, or a job would start again in vain.
  std::chrono::seconds offer_rest{30};
  /// A create call whose outcome is unknown may still arrive this long after it was sent; longer
  /// than any call lasts plus the cloud's own 60 s.
  std::chrono::seconds settle{120};
  /// How long a job's nodes are believed that they have lost the batch host: longer than slurmctld
  /// needs to find that it does not answer (12 s), and as far as clocks may differ.
  std::chrono::seconds lost_host_holds{60};
  int most_attempts = 12;  ///< leases tried per node of one burst
};

struct View {
  const Book* book = nullptr;                   ///< never null
  const SlurmPicture* slurm = nullptr;          ///< null: not seen yet
  const CloudPicture* cloud = nullptr;          ///< never null
  const std::set<std::string>* busy = nullptr;  ///< Call::subject() of those under way; never null
  /// Since when each of our nodes has been without a job.
  const std::map<std::string, WallTime>* unowned = nullptr;
  WallTime now{};
  double jitter01 = 0.5;
};

}  // namespace acb::cloud

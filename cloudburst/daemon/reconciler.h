// SPDX-License-Identifier: Apache-2.0
// The loop that makes ledger, Slurm and cloud agree: it looks, plans, writes down, and has things
// done. One thread runs it and alone touches the ledger; everything else reaches it as letters or
// reads a snapshot, so that a hung cloud or slurmctld holds up neither it nor the answers.
#pragma once

#include "cloudburst/config/config.h"
#include "cloudburst/control/server.h"
#include "cloudburst/daemon/admission.h"
#include "cloudburst/daemon/answers.h"
#include "cloudburst/daemon/compose.h"
#include "cloudburst/daemon/mailbox.h"
#include "cloudburst/daemon/slurm_link.h"
#include "cloudburst/daemon/user_names.h"
#include "cloudburst/daemon/worker_pool.h"
#include "cloudburst/join/join_server.h"
#include "cloudburst/ledger/ledger.h"
#include "cloudburst/plan/plan.h"
#include "cloudburst/provider/provider.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>

namespace acb::cloud {

class Reconciler {
 public:
  Reconciler(Config config, Policy policy, Ledger ledger, Provider provider);
  ~Reconciler();
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  /// Connects to Slurm and reads the ledger; then run() until stop().
  [[nodiscard]] Status start(SlurmClient client, JoinPlace join, std::string munge_key);
  void run();
  /// From any thread, or a signal's: run() returns after the round under way.
  void stop();

  /// Handlers of the control socket and of the join service; thread-safe.
  [[nodiscard]] Json answer(const Json& request, const Peer& peer);
  [[nodiscard]] Result<JoinGrant> join(const JoinRequest& request);

 private:
  [[nodiscard]] bool save(const Changes& changes);
  [[nodiscard]] Status load_book();
  void follow_clock();
  void prune();
  void take_orders();
  void round();
  void decide();
  void compose(Changes& changes);
  void dispatch(Call call);
  void call_cloud(const Call& call);
  void settle(const Call& call, const std::function<Lease(Lease)>& change);
  void take_picture(SlurmLink::Seen seen);
  void publish();
  [[nodiscard]] Json prolog(const Json& request);
  [[nodiscard]] Json close(const std::string& key, const Snapshot& snapshot);
  [[nodiscard]] Result<JoinGrant> grant(const JoinRequest& request);
  [[nodiscard]] double jitter();
  template <typename Answer, typename Work, typename Then>
  void in_worker(const Call& call, Work work, Then then);
  template <typename Answer, typename Work, typename After>
  void for_lease(const Call& call, Work work, After after);

  Config config_;
  Policy policy_;
  Ledger ledger_;
  std::shared_ptr<const Provider> provider_;
  JoinPlace join_place_;
  std::string munge_key_;

  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  // Many: where a cloud answers slowly, all may wait for one of its answers for half a minute.
  WorkerPool workers_{32};
  std::unique_ptr<SlurmLink> slurm_;
  UserNames names_{name_in_system};
  std::atomic<bool> stopping_{false};

  // Of the loop's thread alone.
  Book book_;
  std::optional<SlurmPicture> picture_;
  CloudPicture cloud_;
  std::optional<std::chrono::steady_clock::time_point> listed_all_;
  std::set<std::string> busy_;
  std::map<std::string, WallTime> resting_;  ///< subjects that Slurm refused, until when
  std::map<std::string, WallTime> unowned_;
  Admission admission_;
  /// While the ledger cannot be written: not before.
  std::chrono::steady_clock::time_point write_again_;
  std::chrono::steady_clock::time_point tell_again_;
  std::optional<std::chrono::steady_clock::time_point> pruned_;
  WallTime wall_seen_ = wall_now();
  std::chrono::steady_clock::time_point steady_seen_ = std::chrono::steady_clock::now();
  std::string unread_;   ///< the order that cannot be read just now, as told
  bool changed_ = true;  ///< since the last snapshot
  bool moving_ = true;
  bool slurm_answers_ = true;
  std::mt19937_64 random_{std::random_device{}()};

  std::mutex snapshot_mutex_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::map<std::uint32_t, WallTime> prologs_;  ///< when each job's prolog first asked
};

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// A plan in the making: the pictures, indexed, with the rows changed so far. Private to plan/. Each
// concern is a function on it; they see each other's changes, in the order in which plan() calls
// them.
#pragma once

#include "cloudburst/plan/label.h"
#include "cloudburst/plan/plan.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acb::cloud {

/// The identity of the burst that a job is now.
[[nodiscard]] BurstId burst_id(const SlurmJob& job);

class Draft {
 public:
  Draft(const View& view, const Policy& policy);

  const View& view;
  const Policy& policy;
  const WallTime now;

  // --- jobs and nodes
  struct Labelled {
    const SlurmJob* job;
    Label label;  ///< with the site's defaults filled in
    Market market;
  };
  [[nodiscard]] const std::vector<Labelled>& bursting_jobs() const { return labelled_; }
  [[nodiscard]] const Labelled* bursting_job(const BurstId& id) const;
  /// The job that has the node, configuring or running; nullptr: none. Of several (a twin should
  /// not share nodes) the one that the node's lease serves already, else the first.
  [[nodiscard]] const SlurmJob* owner(const std::string& node) const;
  /// Whether a job that has ended is still being cleaned up on the node.
  [[nodiscard]] bool is_completing_on(const std::string& node) const;
  /// Whether every job on the node, cleaning up or not, is of this burst.
  [[nodiscard]] bool is_all_of(const std::string& node, const BurstId& id) const;
  [[nodiscard]] const SlurmNode* slurm_node(const std::string& node) const;
  [[nodiscard]] bool is_ours(const std::string& node) const { return slurm_node(node) != nullptr; }

  // --- leases
  /// Keys of the leases that are not gone.
  [[nodiscard]] const std::vector<std::string>& live_keys() const { return live_; }
  [[nodiscard]] const Lease* find(const std::string& key) const;
  /// The node's lease that is not gone: the one that serves before one that is being given back.
  [[nodiscard]] const Lease* live_lease(const std::string& node) const;
  /// The node's newest lease, gone ones included.
  [[nodiscard]] const Lease* newest_lease(const std::string& node) const;
  [[nodiscard]] std::vector<const Lease*> leases_made_for(const BurstId& id,
                                                          const std::string& node) const;
  [[nodiscard]] std::vector<const Lease*> all_leases() const;
  Lease& edit(const std::string& key);
  Lease& add(Lease lease);
  /// To be released: at once gone where provably nothing was made.
  void give_back(const std::string& key, std::string_view why);

  // --- bursts
  [[nodiscard]] const Burst* burst(const BurstId& id) const;
  Burst& edit_burst(const BurstId& id);
  Burst& add_burst(Burst burst);
  /// Gives the burst up: all that it alone has is given back, and its job waits for a growing
  /// delay. Classes that only a person can mend wait the longest; none waits less than the cloud
  /// told.
  void fail_burst(const BurstId& id,
                  std::string reason,
                  std::optional<ErrorClass> cls,
                  WallTime not_before = {});

  // --- orders, calls, events
  void close_order(HookOrder order);
  [[nodiscard]] bool is_busy(const std::string& subject) const;
  /// Adds the call unless one with its subject is under way or planned already.
  bool call(Call call);
  void event(std::uint32_t job, std::string node, std::string text);
  /// Something is about to change in Slurm that is to be seen at once.
  void look_soon() { plan_.moving = true; }

  /// Rows that differ from the ledger's, and the calls.
  [[nodiscard]] Plan finish();

 private:
  void index_jobs();
  /// Of the burst's failed starts in a row, those for which machines were rented that never came
  /// up.
  [[nodiscard]] int paid_tries(const Burst& burst) const;

  std::vector<Labelled> labelled_;
  std::map<std::string, std::vector<const SlurmJob*>> jobs_on_;
  std::map<std::string, const SlurmNode*> nodes_;
  std::vector<std::string> live_;
  std::map<std::string, std::vector<std::string>> by_node_;
  std::map<std::string, Lease> leases_;  ///< edited
  std::map<BurstId, Burst> bursts_;      ///< edited
  std::set<std::string> planned_;
  Plan plan_;
};

// The concerns, in the order in which plan() takes them.
void plan_orders(Draft& draft);
void plan_orphans(Draft& draft);
void plan_owners(Draft& draft);
void plan_bursts(Draft& draft);
void plan_leases(Draft& draft);
void plan_nodes(Draft& draft);

/// A machine that boots, by all the names that its user and the cloud's support have for it.
[[nodiscard]] std::string name_of_boot(const Lease& lease);

/// Of a machine that went without us: how, in words.
[[nodiscard]] std::string how_it_went(const Lease& lease);

/// Opens what the burst's nodes lack, or gives the burst up.
void rent_for(Draft& draft, const Draft::Labelled& labelled);

}  // namespace acb::cloud

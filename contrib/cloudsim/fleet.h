// SPDX-License-Identifier: Apache-2.0
// Everything that is rented, and its life: a state machine that starts nothing itself. Its commands
// say what to start and to cut; its events say what happened. Time is an argument. Not thread-safe.
#pragma once

#include "base/json.h"
#include "base/text.h"
#include "cloudsim/billing.h"
#include "cloudsim/faults.h"
#include "cloudsim/requests.h"
#include "cloudsim/scenario.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace acb::sim {

enum class InstanceStatus { booting, running, releasing, released, lost };
[[nodiscard]] std::string_view name_of(InstanceStatus status);

struct Instance {
  std::string instance_id;
  InstanceStatus status = InstanceStatus::booting;
  std::int64_t gpus = 1;
  std::int64_t units = 1;  ///< instances of the offer that it takes up; above 1 for jobs only
  WallTime billed_from;
  std::optional<WallTime> billed_until;
  std::optional<std::string> address;
  std::optional<WallTime> interruption_at;  ///< a notice has been given
  std::optional<WallTime> notice_due;       ///< it will be given then
  std::optional<WallTime> take_due;         ///< taken back then
  WallTime boot_due;
  WallTime release_due;
  std::optional<FaultKind> boot_fault;
  bool started = false;    ///< its command was ordered
  bool destroyed = false;  ///< and has ended

  [[nodiscard]] bool is_live() const {
    return status == InstanceStatus::booting || status == InstanceStatus::running;
  }
  [[nodiscard]] bool is_gone() const {
    return status == InstanceStatus::released || status == InstanceStatus::lost;
  }
};

struct JobRun {
  JobRequest request;
  bool cancelled = false;
  std::optional<int> exit_code;
};

enum class AllocationStatus { pending, running, releasing, released, failed };
[[nodiscard]] std::string_view name_of(AllocationStatus status);

/// An allocation, or a job: an allocation of one instance that the API does not list as one.
struct Allocation {
  std::uint64_t ordinal = 0;
  std::string id;
  WallTime accepted_at;
  WallTime listed_at;  ///< lists show it from then on
  std::string idempotency_key;
  const OfferSpec* offer = nullptr;
  BillTerms terms;
  std::string user_data;
  std::map<std::string, std::string> tags;
  std::vector<Instance> instances;
  std::optional<ApiError> failure;
  std::optional<JobRun> job;

  [[nodiscard]] AllocationStatus status() const;
  [[nodiscard]] std::int64_t billed_s(const Instance& instance, WallTime now) const;
  /// Of an instance; nothing once the allocation has failed.
  [[nodiscard]] Money cost(const Instance& instance, WallTime now) const;
};

struct FleetCommand {
  enum class Kind { start, destroy };
  Kind kind = Kind::start;
  std::string instance_id;
};
struct FleetEvent {
  WallTime at;
  std::string event;  ///< accepted, running, notice, lost, releasing, released, failed
  std::string allocation_id;
  std::string instance_id;
  std::string detail;
};

enum class Released { already_gone, releasing };

struct ListQuery {
  bool jobs = false;
  std::optional<std::string> idempotency_key;
  std::vector<std::pair<std::string, std::string>> tags;
  std::uint64_t before = UINT64_MAX;  ///< ordinals below this
  std::size_t limit = 100;
};

class Fleet {
 public:
  /// The scenario must outlive the fleet.
  Fleet(const Scenario& scenario, WallTime start);

  [[nodiscard]] ApiResult<const Allocation*> allocate(const AllocateRequest& request,
                                                      const std::string& idempotency_key,
                                                      FaultPlan& faults,
                                                      WallTime now);
  [[nodiscard]] ApiResult<const Allocation*> submit(const JobRequest& request,
                                                    const std::string& idempotency_key,
                                                    FaultPlan& faults,
                                                    WallTime now);
  /// The instances named, or all when none is. Nothing is released unless all of them are known.
  [[nodiscard]] ApiResult<Released> release(const std::string& allocation_id,
                                            const std::vector<std::string>& instance_ids,
                                            WallTime now);
  [[nodiscard]] ApiResult<void> cancel(const std::string& job_id, WallTime now);
  [[nodiscard]] ApiResult<const Allocation*> set_tags(
      const std::string& allocation_id, const std::map<std::string, std::string>& tags);
  /// Takes an instance back after `notice`, which it is told of; without one, at once.
  [[nodiscard]] Status take(const std::string& instance_id,
                            std::optional<std::chrono::milliseconds> notice,
                            WallTime now);
  void release_all(WallTime now);

  /// What the outside saw.
  void booted(const std::string& instance_id, const std::string& address, WallTime now);
  void exited(const std::string& instance_id, int exit_code, WallTime now);
  void destroyed(const std::string& instance_id, WallTime now);
  /// Whatever is due by `now`.
  void advance(WallTime now);
  [[nodiscard]] std::deque<FleetCommand> take_commands() { return std::exchange(commands_, {}); }
  [[nodiscard]] std::vector<FleetEvent> take_events() { return std::exchange(events_, {}); }

  /// Newest first; null when there is none. Pointers stay good as long as the fleet.
  [[nodiscard]] std::vector<const Allocation*> list(const ListQuery& query, WallTime now) const;
  [[nodiscard]] const Allocation* find(const std::string& id) const;
  [[nodiscard]] std::pair<const Allocation*, const Instance*> find_instance(
      const std::string& instance_id) const;
  [[nodiscard]] const std::deque<Allocation>& all() const { return allocations_; }
  [[nodiscard]] std::int64_t gpus_used(const std::string& gpu_type) const;
  [[nodiscard]] std::int64_t free_instances(const OfferSpec& offer) const;
  [[nodiscard]] Money price_now(const OfferSpec& offer, WallTime now) const;
  [[nodiscard]] Money spent(WallTime now) const;  ///< billed to what was accepted this month
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] WallTime start() const { return start_; }

 private:
  struct Place {
    Allocation* allocation = nullptr;
    Instance* instance = nullptr;
  };
  [[nodiscard]] ApiResult<Choice> admit(const Wish& wish, WallTime now) const;
  Allocation& accept(const Choice& choice, const std::string& idempotency_key, WallTime now);
  void add_instance(Allocation& allocation, const Instance& shape, FaultPlan& faults);
  void plan_take(Instance& instance, const OfferSpec& offer, std::uint64_t ordinal) const;
  [[nodiscard]] Place place(const std::string& instance_id);
  [[nodiscard]] Allocation* find_mutable(const std::string& id);
  void advance_instance(Allocation& allocation, Instance& instance, WallTime now);
  void begin_release(Allocation& allocation, Instance& instance, WallTime now);
  void lose(Allocation& allocation, Instance& instance, WallTime now);
  void fail_allocation(Allocation& allocation, const std::string& why, WallTime now);
  void end(Allocation& allocation, Instance& instance, InstanceStatus status, WallTime now);
  void destroy(Instance& instance);
  void note(const Allocation& allocation,
            const Instance* instance,
            std::string event,
            WallTime now,
            std::string detail = {});
  [[nodiscard]] double draw(std::string_view purpose, std::uint64_t ordinal) const;

  const Scenario& scenario_;
  WallTime start_;
  std::deque<Allocation> allocations_;  // in order of acceptance; never shrinks
  std::map<std::string, std::size_t> by_id_;
  std::map<std::string, std::size_t> by_instance_;
  std::uint64_t instances_made_ = 0;
  std::deque<FleetCommand> commands_;
  std::vector<FleetEvent> events_;
};

}  // namespace acb::sim

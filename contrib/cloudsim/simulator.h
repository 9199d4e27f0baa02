// SPDX-License-Identifier: Apache-2.0
// The running cloud: a fleet under a lock, the processes that stand for its machines, and the logs.
// Thread-safe; one thread of its own starts, watches and cuts the processes.
#pragma once

#include "cloudsim/children.h"
#include "cloudsim/fleet.h"
#include "cloudsim/idempotency.h"
#include "cloudsim/journal.h"

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace acb::sim {

enum class Keyspace { allocations, jobs };

class Simulator {
 public:
  /// Files under `state`: requests.jsonl, bill.jsonl, events.jsonl, instances/ID/. `metadata_url`
  /// is what an instance id is appended to. The guard must outlive this.
  [[nodiscard]] static Result<std::unique_ptr<Simulator>> open(Scenario scenario,
                                                               const std::filesystem::path& state,
                                                               std::string metadata_url,
                                                               Guard& guard);
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;
  ~Simulator();

  /// Calls `action(fleet, faults, now)` under the lock; whatever it caused is carried out after.
  template <typename Action>
  auto with(Action&& action) {
    const std::scoped_lock lock(mutex_);
    return std::forward<Action>(action)(fleet_, faults_, wall_now());
  }
  /// Claims an idempotency key; blocks while another request with it is in flight.
  [[nodiscard]] IdempotencyStore::Claim claim(Keyspace space,
                                              const std::string& key,
                                              const std::string& body);
  void complete(Keyspace space, const std::string& key, std::string made, std::string reply);
  void abandon(Keyspace space, const std::string& key);
  /// Blocks for `time`, or until shutdown() begins.
  void pause(std::chrono::milliseconds time);
  void log_request(const Json& line) { requests_.append(line); }
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  /// Every line of the bill, up to now.
  [[nodiscard]] Json bill();
  /// Gives everything back, waits until it is gone (30 s at most) and ends the thread.
  void shutdown();

 private:
  Simulator(Scenario scenario,
            std::filesystem::path state,
            std::string metadata_url,
            Guard& guard,
            std::vector<Journal> journals);
  void run();
  bool turn();
  void carry_out(const FleetCommand& command);
  [[nodiscard]] Status start_instance(const std::string& instance_id);
  void apply(const ChildEvent& event);
  void write_events();
  [[nodiscard]] IdempotencyStore& keys(Keyspace space);

  const Scenario scenario_;
  const std::filesystem::path state_;
  const std::string metadata_url_;
  Journal requests_;
  Journal bill_;
  Journal events_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  Fleet fleet_;
  FaultPlan faults_;
  IdempotencyStore allocation_keys_;
  IdempotencyStore job_keys_;
  Children children_;  // of thread_ alone
  std::thread thread_;
};

/// `text` with ${METADATA_URL} and ${INSTANCE_ID} replaced.
[[nodiscard]] std::string fill_user_data(std::string text,
                                         const std::string& metadata_url,
                                         const std::string& instance_id);

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
// A model of the cloud API in memory, for simulations: time is passed in, faults are drawn from a
// generator. It lies as real clouds do: replies are lost after the machine was made, requests
// arrive late, lists lack what is young.
#pragma once

#include "cloudburst/provider/provider.h"

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace acb::cloud {

class FakeCloud {
 public:
  struct Faults {
    double throttled = 0;
    std::optional<std::chrono::seconds> retry_after = {};  ///< told with it
    double lost_request = 0;                               ///< no answer, nothing happened
    double lost_create = 0;                                ///< likewise, of create calls alone
    double lost_reply = 0;                                 ///< no answer, but it happened
    double late = 0;  ///< no answer, and it happens up to 60 s later
    double no_capacity = 0;
    double made_though_full = 0;  ///< a server error that speaks of capacity, and it happened
    double refused = 0;           ///< auth
    double never_boots = 0;
    double switches_off = 0;  ///< as soon as it is up, from inside
    double taken_per_minute = 0;
    double forgets_release = 0;  ///< accepted, and nothing happens
  };
  struct Machine {
    std::string id;
    std::string key;
    std::string node;
    InstanceStatus status = InstanceStatus::booting;
    WallTime accepted{};
    WallTime boots{};     ///< runs from then on
    WallTime released{};  ///< while releasing: when it ends
    bool boots_ever = true;
    [[nodiscard]] bool is_billed() const {
      return status != InstanceStatus::released && status != InstanceStatus::lost;
    }
  };

  explicit FakeCloud(std::mt19937_64& random) : random_(random) {}
  Faults faults;

  void step(WallTime now);

  CloudResult<Allocation> allocate(const std::string& key, WallTime now);
  CloudResult<std::optional<Allocation>> find_by_key(const std::string& key);
  CloudResult<Allocation> get(const std::string& id);
  CloudResult<Provider::Released> release(const std::string& id, WallTime now);
  CloudResult<std::vector<Allocation>> list(WallTime now);
  CloudResult<std::vector<Offer>> offers();

  /// Takes the machine away without notice.
  void take(const std::string& id);
  /// A request that was sent arrives at `at`, though nobody waits for its answer.
  void arrive_later(const std::string& key, WallTime at) { late_.emplace(at, key); }

  [[nodiscard]] const std::vector<Machine>& machines() const { return machines_; }
  /// The booted machine under a node name, or nullptr.
  [[nodiscard]] const Machine* running(const std::string& node) const;

 private:
  [[nodiscard]] bool chance(double p) {
    return std::uniform_real_distribution<>(0, 1)(random_) < p;
  }
  Machine& make(const std::string& key, WallTime now);
  [[nodiscard]] Allocation as_allocation(const Machine& machine) const;
  [[nodiscard]] Machine* find(const std::string& id);
  [[nodiscard]] std::optional<CloudError> trouble();

  std::mt19937_64& random_;
  std::vector<Machine> machines_;
  std::multimap<WallTime, std::string> late_;
  WallTime last_{};
};

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// A whole site in memory: fake Slurm, fake cloud, a ledger that survives crashes, and plan() with
// calls that take time, fail and are cut off. The daemon may die between any two of its actions:
// before and after each ledger commit, and before and after each call. Invariants are checked at
// every tick.
#pragma once

#include "cloudburst/plan/plan.h"
#include "tests/support/fake_cloud.h"
#include "tests/support/fake_slurm.h"

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace acb::cloud {

class Fleet {
 public:
  Fleet(std::uint64_t seed, int nodes);

  WallTime now;
  std::mt19937_64 random;
  FakeCloud cloud;
  FakeSlurm slurm;
  Book book;    ///< in the daemon's memory
  Book ledger;  ///< as written: what a crash leaves
  Policy policy;
  double crash = 0;                 ///< chance of a crash between two actions
  int crash_at = 0;                 ///< crashes before the n-th action; 0: does not
  int actions = 0;                  ///< so far
  bool disk_full = false;           ///< the ledger cannot be written
  std::vector<Call> made;           ///< all calls, in order
  std::vector<std::string> broken;  ///< invariants that did not hold

  /// Goes on for `time`; `each` is called before every tick.
  void run(std::chrono::seconds time, const std::function<void()>& each = nullptr);
  /// The daemon dies here and is started again `down` later; what was under way is cut off.
  void crash_now(std::chrono::milliseconds down);
  /// Whether nothing is rented, no lease is live and all nodes are "idle~".
  [[nodiscard]] std::string leftovers() const;
  [[nodiscard]] bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; }
  [[nodiscard]] std::vector<const Lease*> leases(LeaseState state) const;
  [[nodiscard]] int count(CallKind kind) const;

 private:
  struct Flight {
    Call call;
    WallTime performs{};
    WallTime returns{};
    std::function<void()> deliver;  ///< set once performed
    bool is_over = false;
  };
  void tick();
  [[nodiscard]] bool dies();
  [[nodiscard]] bool commit(const Changes& changes);
  void write(const Changes& changes);
  [[nodiscard]] bool take_orders();
  void decide();
  [[nodiscard]] bool advance_calls();
  void perform(Flight& flight);
  void perform_on_slurm(const Call& call);
  void settle(const std::string& key, const std::function<Lease(Lease)>& change);
  void check_written_ahead(const std::string& key);
  void check();
  [[nodiscard]] double jitter() { return std::uniform_real_distribution<>(0, 1)(random); }

  CloudPicture seen_;
  std::map<std::string, WallTime> unowned_;
  std::vector<Flight> flights_;
  std::vector<HookOrder> inbox_;
  WallTime down_until_{};
};

}  // namespace acb::cloud

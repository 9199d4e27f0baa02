// SPDX-License-Identifier: Apache-2.0
// The durable memory of the daemon: an SQLite file, written before anything that could cost money
// is done. A change is a whole transaction that has reached the disk when save() returns. One
// process and one thread at a time.
#pragma once

#include "base/result.h"
#include "cloudburst/ledger/records.h"

#include <filesystem>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace acb::cloud {

/// The rows that decisions need, in memory: a copy of the ledger's live part.
struct Book {
  std::map<std::string, Lease> leases;      ///< by key: all live ones, and the lately closed
  std::map<BurstId, Burst> bursts;          ///< those of the last days
  std::map<std::string, HookOrder> orders;  ///< by name, those not done
  /// Highest attempt ever made under (job, restart, node): keys are never used twice.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::uint32_t> attempts;

  void apply(const Changes& changes);
  /// Drops what was closed or ended before `before`.
  void forget(WallTime before);
  /// The newest time at which any of it was written; the clock has been set back where it is to
  /// come.
  [[nodiscard]] WallTime newest() const;
  /// After the clock was set: what is waited for moves along, so that it takes as long as it would.
  /// What the cloud has told stays.
  void move_times(std::chrono::milliseconds step);
  /// The job's start before this one; null: none. Slurm writes a new submit time at every requeue:
  /// the newest one that is not after this start's counts.
  [[nodiscard]] const Burst* start_before(const BurstId& id) const;
};

class Ledger {
 public:
  /// Opens or creates the file (0600). `corrupt` where it is not a sound ledger, `invalid` where a
  /// newer release wrote it, `unavailable` where another process holds it, `denied`.
  [[nodiscard]] static Result<Ledger> open(const std::filesystem::path& path);
  Ledger(Ledger&&) noexcept;
  Ledger& operator=(Ledger&&) noexcept;
  ~Ledger();

  /// Live rows, those closed or opened since `since`, and orders not done.
  [[nodiscard]] Result<Book> load(WallTime since);
  /// Writes all of `changes`, or nothing. Durable on return.
  [[nodiscard]] Status save(const Changes& changes);
  /// The job's events, oldest first; of all jobs for 0. At most `limit` of the newest.
  [[nodiscard]] Result<std::vector<Event>> events(std::uint32_t job, int limit);
  /// Deletes events, done orders and closed leases from before `before`.
  [[nodiscard]] Status prune(WallTime before);

 private:
  class Database;
  explicit Ledger(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace acb::cloud

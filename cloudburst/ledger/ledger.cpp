// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/ledger/ledger.h"

#include "cloudburst/ledger/rows.h"
#include "cloudburst/ledger/schema.h"

#include <sqlite3.h>

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

namespace acb::cloud {

namespace {

/// PRAGMA user_version of the schema above. A change of it comes with the step from the one before.
constexpr int kSchemaVersion = 1;

tl::unexpected<Error> fail_sql(const std::string& path, const SQLite::Exception& e) {
  const std::string message = "ledger: " + path + ": " + e.what();
  switch (e.getErrorCode()) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return fail(ErrorCode::corrupt,
                  message +
                      "; restore it from a copy, or move it away: what is rented is then "
                      "found by its tags");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail(ErrorCode::unavailable, message + ": another process has it open");
    case SQLITE_FULL:
      return fail(ErrorCode::exhausted, message);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return fail(ErrorCode::denied, message);
    default:
      return fail(ErrorCode::internal, message);
  }
}

int query_number(SQLite::Database& database, const char* sql) {
  return database.execAndGet(sql).getInt();
}

}  // namespace

void Book::apply(const Changes& changes) {
  for (const Lease& lease : changes.figures) {
    leases[lease.key] = lease;
  }
  for (const Lease& lease : changes.leases) {
    leases[lease.key] = lease;
    std::uint32_t& most = attempts[{lease.made_for.job, lease.made_for.restart, lease.node}];
    most = std::max(most, lease.attempt);
  }
  for (const Burst& burst : changes.bursts) {
    bursts[burst.id] = burst;
  }
  for (const HookOrder& order : changes.orders) {
    if (order.done) {
      orders.erase(order.name);
    } else {
      orders[order.name] = order;
    }
  }
}

WallTime Book::newest() const {
  WallTime newest{};
  for (const auto& [key, lease] : leases) {
    newest = std::max({newest, lease.created, lease.sent, lease.checked});
  }
  for (const auto& [id, burst] : bursts) {
    newest = std::max(newest, burst.opened);
  }
  return newest;
}

void Book::move_times(std::chrono::milliseconds step) {
  const auto move = [&](std::optional<WallTime>& time) {
    if (time) {
      *time += step;
    }
  };
  for (auto& [key, lease] : leases) {
    for (WallTime* time :
         {&lease.sent, &lease.next_try, &lease.checked, &lease.created, &lease.deadline}) {
      *time += step;
    }
    move(lease.up);
    move(lease.idle);
    move(lease.closed);
  }
  for (auto& [id, burst] : bursts) {
    burst.opened += step;
    move(burst.configuring);
    if (burst.retry_at) {  // in whole seconds, as Slurm's start times are
      *burst.retry_at += std::chrono::floor<std::chrono::seconds>(step);
    }
  }
}

const Burst* Book::start_before(const BurstId& id) const {
  if (id.restart == 0) {
    return nullptr;
  }
  auto last = bursts.upper_bound({id.job, id.restart - 1, id.submit});
  if (last == bursts.begin()) {
    return nullptr;
  }
  --last;
  const bool is_its = last->first.job == id.job && last->first.restart == id.restart - 1;
  return is_its ? &last->second : nullptr;
}

void Book::forget(WallTime before) {
  std::erase_if(leases, [&](const auto& entry) {
    return !entry.second.is_live() && entry.second.closed && *entry.second.closed < before;
  });
  std::erase_if(bursts, [&](const auto& entry) {
    return entry.second.state == BurstState::ended && entry.second.opened < before;
  });
}

class Ledger::Database {
 public:
  explicit Database(std::string path)
      : path_(std::move(path)), db_(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE) {}

  Status prepare() {
    db_.exec(
        "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "PRAGMA secure_delete=ON; PRAGMA foreign_keys=ON;");
    const int version = query_number(db_, "PRAGMA user_version");
    if (version > kSchemaVersion) {
      return fail(ErrorCode::invalid,
                  "ledger: " + path_ + ": schema version " + std::to_string(version) +
                      ": written by a newer release; this one knows up to " +
                      std::to_string(kSchemaVersion));
    }
    if (const std::string check = db_.execAndGet("PRAGMA quick_check(1)").getString();
        check != "ok") {
      return fail(ErrorCode::corrupt, "ledger: " + path_ + ": " + check);
    }
    if (version == 0) {
      SQLite::Transaction transaction(db_);
      db_.exec(kSchemaSql);
      db_.exec("PRAGMA user_version=" + std::to_string(kSchemaVersion));
      transaction.commit();
    }
    return {};
  }

  /// Calls `work(database)`; what SQLite throws becomes an Error.
  template <typename Work>
  auto guarded(Work&& work) -> decltype(work(std::declval<SQLite::Database&>())) {
    try {
      return work(db_);
    } catch (const SQLite::Exception& e) {
      return fail_sql(path_, e);
    } catch (const BadRow& e) {
      return fail(ErrorCode::corrupt, path_ + ": " + e.what());
    }
  }

 private:
  std::string path_;
  SQLite::Database db_;
};

Ledger::Ledger(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;
Ledger::~Ledger() = default;

Result<Ledger> Ledger::open(const std::filesystem::path& path) {
  try {
    const mode_t old_mask = umask(0077);
    auto database = std::make_unique<Database>(path.string());
    umask(old_mask);
    ACB_TRY(database->prepare());
    return Ledger(std::move(database));
  } catch (const SQLite::Exception& e) {
    return fail_sql(path.string(), e);
  }
}

Result<Book> Ledger::load(WallTime since) {
  return database_->guarded([&](SQLite::Database& db) -> Result<Book> {
    const std::int64_t from = since.time_since_epoch().count();
    Changes rows;
    SQLite::Statement leases(db, "SELECT * FROM leases WHERE state <> 'gone' OR closed >= ?");
    leases.bind(1, from);
    while (leases.executeStep()) {
      rows.leases.push_back(lease_from(leases));
    }
    SQLite::Statement bursts(db, "SELECT * FROM bursts WHERE state <> 'ended' OR opened >= ?");
    bursts.bind(1, from);
    while (bursts.executeStep()) {
      rows.bursts.push_back(burst_from(bursts));
    }
    SQLite::Statement orders(db, "SELECT * FROM orders WHERE NOT done");
    while (orders.executeStep()) {
      rows.orders.push_back(order_from(orders));
    }
    Book book;
    book.apply(rows);
    SQLite::Statement attempts(
        db, "SELECT job, restart, node, max(attempt) FROM leases GROUP BY job, restart, node");
    while (attempts.executeStep()) {
      book.attempts[{attempts.getColumn(0).getUInt(),
                     attempts.getColumn(1).getUInt(),
                     attempts.getColumn(2).getString()}] = attempts.getColumn(3).getUInt();
    }
    return book;
  });
}

Status Ledger::save(const Changes& changes) {
  return database_->guarded([&](SQLite::Database& db) -> Status {
    SQLite::Transaction transaction(db);
    // Closed rows first: a node's new lease and the end of its old one may come together.
    std::vector<const Lease*> leases;
    for (const Lease& lease : changes.leases) {
      leases.push_back(&lease);
    }
    std::stable_partition(
        leases.begin(), leases.end(), [](const Lease* lease) { return !lease->is_live(); });
    for (const Lease* lease : leases) {
      write_row(db, *lease);
    }
    for (const Burst& burst : changes.bursts) {
      write_row(db, burst);
    }
    for (const HookOrder& order : changes.orders) {
      write_row(db, order);
    }
    for (const Event& event : changes.events) {
      write_row(db, event);
    }
    transaction.commit();
    return {};
  });
}

Result<std::vector<Event>> Ledger::events(std::uint32_t job, int limit) {
  return database_->guarded([&](SQLite::Database& db) -> Result<std::vector<Event>> {
    SQLite::Statement rows(
        db, "SELECT * FROM events WHERE ?1 = 0 OR job = ?1 ORDER BY id DESC LIMIT ?2");
    rows.bind(1, job);
    rows.bind(2, limit);
    std::vector<Event> events;
    while (rows.executeStep()) {
      events.push_back(event_from(rows));
    }
    std::reverse(events.begin(), events.end());
    return events;
  });
}

Status Ledger::prune(WallTime before) {
  return database_->guarded([&](SQLite::Database& db) -> Status {
    SQLite::Transaction transaction(db);
    for (const char* sql : {"DELETE FROM events WHERE at < ?",
                            "DELETE FROM orders WHERE done AND at < ?",
                            "DELETE FROM bursts WHERE state = 'ended' AND opened < ?",
                            "DELETE FROM leases WHERE state = 'gone' AND closed < ?"}) {
      SQLite::Statement statement(db, sql);
      statement.bind(1, std::int64_t{before.time_since_epoch().count()});
      statement.exec();
    }
    transaction.commit();
    return {};
  });
}

}  // namespace acb::cloud

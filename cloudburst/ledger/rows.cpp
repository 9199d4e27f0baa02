// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/ledger/rows.h"

#include <array>
#include <cstddef>

namespace acb::cloud {

namespace {

/// Binds values in the order of the columns.
class Writer {
 public:
  Writer(SQLite::Database& database, const std::string& table, int columns)
      : statement_(database, sql(table, columns)) {}

  Writer& put(const std::string& text) {
    statement_.bind(++column_, text);
    return *this;
  }
  Writer& put(std::string_view text) { return put(std::string(text)); }
  Writer& put(std::int64_t value) {
    statement_.bind(++column_, value);
    return *this;
  }
  Writer& put(std::uint32_t value) { return put(std::int64_t{value}); }
  Writer& put(int value) { return put(std::int64_t{value}); }
  Writer& put(bool value) { return put(std::int64_t{value ? 1 : 0}); }
  Writer& put(Money money) { return put(money.micros()); }
  Writer& put(WallTime time) { return put(std::int64_t{time.time_since_epoch().count()}); }
  Writer& put(const BurstId& id) { return put(id.job).put(id.restart).put(id.submit); }
  Writer& put(std::optional<WallTime> time) {
    if (time) {
      return put(*time);
    }
    return null();
  }
  Writer& put(std::optional<ErrorClass> cls) { return cls ? put(name_of(*cls)) : null(); }
  Writer& null() {
    statement_.bind(++column_);
    return *this;
  }
  void run() { statement_.exec(); }

 private:
  static std::string sql(const std::string& table, int columns) {
    std::string marks;
    for (int i = 0; i < columns; ++i) {
      marks += i == 0 ? "?" : ",?";
    }
    return "INSERT INTO " + table + " VALUES (" + marks + ")";
  }
  SQLite::Statement statement_;
  int column_ = 0;
};

/// Reads columns in order.
class Reader {
 public:
  explicit Reader(SQLite::Statement& row) : row_(row) {}

  std::string text() { return row_.getColumn(column_++).getString(); }
  std::int64_t integer() { return row_.getColumn(column_++).getInt64(); }
  int number() { return static_cast<int>(integer()); }
  std::uint32_t id() { return static_cast<std::uint32_t>(integer()); }
  bool truth() { return integer() != 0; }
  Money money() { return Money::from_micros(integer()); }
  WallTime time() { return WallTime(std::chrono::milliseconds(integer())); }
  BurstId burst() {
    BurstId id;
    id.job = this->id();
    id.restart = this->id();
    id.submit = time();
    return id;
  }
  std::optional<WallTime> maybe_time() {
    if (row_.getColumn(column_).isNull()) {
      ++column_;
      return std::nullopt;
    }
    return time();
  }
  Market market() { return value_or_throw(parse_market("ledger", text())); }
  std::optional<ErrorClass> error_class() {
    if (row_.getColumn(column_).isNull()) {
      ++column_;
      return std::nullopt;
    }
    const std::string name = text();
    for (const ErrorClass cls : kClasses) {
      if (name_of(cls) == name) {
        return cls;
      }
    }
    throw BadRow("ledger: '" + name + "': no such error class");
  }
  template <typename T>
  static T value_or_throw(Result<T> result) {
    if (!result) {
      throw BadRow(result.error().message);
    }
    return *result;
  }

 private:
  static constexpr std::array kClasses{ErrorClass::throttled,
                                       ErrorClass::no_capacity,
                                       ErrorClass::quota,
                                       ErrorClass::auth,
                                       ErrorClass::bad_request,
                                       ErrorClass::ambiguous,
                                       ErrorClass::conflict,
                                       ErrorClass::gone};
  SQLite::Statement& row_;
  int column_ = 0;
};

}  // namespace

// Not INSERT OR REPLACE: that would silently delete another live lease of the same node.
void write_row(SQLite::Database& database, const Lease& lease) {
  SQLite::Statement old(database, "DELETE FROM leases WHERE key = ?");
  old.bind(1, lease.key);
  old.exec();
  Writer(database, "leases", 44)
      .put(lease.key)
      .put(lease.made_for)
      .put(lease.node)
      .put(lease.attempt)
      .put(lease.owner)
      .put(name_of(lease.state))
      .put(lease.gpu_type)
      .put(name_of(lease.market))
      .put(lease.offer_id)
      .put(lease.price_per_hour)
      .put(lease.currency)
      .put(lease.minimum_min)
      .put(lease.granularity_s)
      .put(lease.reserved)
      .put(lease.request)
      .put(lease.secret_sha256)
      .put(lease.allocation_id)
      .put(lease.instance_id)
      .put(lease.address)
      .put(lease.request_id)
      .put(lease.tries)
      .put(lease.unanswered)
      .put(lease.doubtful)
      .put(lease.accepted)
      .put(lease.sent)
      .put(lease.next_try)
      .put(lease.checked)
      .put(lease.created)
      .put(lease.deadline)
      .put(lease.up)
      .put(lease.idle)
      .put(lease.reclaim)
      .put(lease.lost)
      .put(lease.error_class)
      .put(lease.error)
      .put(lease.billed_from)
      .put(lease.billed_until)
      .put(lease.billed_s)
      .put(lease.cost)
      .put(lease.closed)
      .run();
}

Lease lease_from(SQLite::Statement& row) {
  Reader in(row);
  Lease lease;
  lease.key = in.text();
  lease.made_for = in.burst();
  lease.node = in.text();
  lease.attempt = in.id();
  lease.owner = in.burst();
  lease.state = Reader::value_or_throw(parse_lease_state(in.text()));
  lease.gpu_type = in.text();
  lease.market = in.market();
  lease.offer_id = in.text();
  lease.price_per_hour = in.money();
  lease.currency = in.text();
  lease.minimum_min = in.number();
  lease.granularity_s = in.number();
  lease.reserved = in.money();
  lease.request = in.text();
  lease.secret_sha256 = in.text();
  lease.allocation_id = in.text();
  lease.instance_id = in.text();
  lease.address = in.text();
  lease.request_id = in.text();
  lease.tries = in.number();
  lease.unanswered = in.truth();
  lease.doubtful = in.truth();
  lease.accepted = in.truth();
  lease.sent = in.time();
  lease.next_try = in.time();
  lease.checked = in.time();
  lease.created = in.time();
  lease.deadline = in.time();
  lease.up = in.maybe_time();
  lease.idle = in.maybe_time();
  lease.reclaim = in.maybe_time();
  lease.lost = in.truth();
  lease.error_class = in.error_class();
  lease.error = in.text();
  lease.billed_from = in.maybe_time();
  lease.billed_until = in.maybe_time();
  lease.billed_s = in.integer();
  lease.cost = in.money();
  lease.closed = in.maybe_time();
  return lease;
}

void write_row(SQLite::Database& database, const Burst& burst) {
  SQLite::Statement old(database,
                        "DELETE FROM bursts WHERE job = ? AND restart = ? AND submit = ?");
  old.bind(1, burst.id.job);
  old.bind(2, burst.id.restart);
  old.bind(3, std::int64_t{burst.id.submit.time_since_epoch().count()});
  old.exec();
  Writer(database, "bursts", 16)
      .put(burst.id)
      .put(std::int64_t{burst.uid})
      .put(name_of(burst.state))
      .put(burst.nodes)
      .put(burst.gpu_type)
      .put(name_of(burst.market))
      .put(burst.fails)
      .put(burst.reason)
      .put(burst.told)
      .put(burst.lifted)
      .put(burst.opened)
      .put(burst.configuring)
      .put(burst.started)
      .put(burst.retry_at)
      .run();
}

Burst burst_from(SQLite::Statement& row) {
  Reader in(row);
  Burst burst;
  burst.id = in.burst();
  burst.uid = static_cast<uid_t>(in.integer());
  burst.state = Reader::value_or_throw(parse_burst_state(in.text()));
  burst.nodes = in.number();
  burst.gpu_type = in.text();
  burst.market = in.market();
  burst.fails = in.number();
  burst.reason = in.text();
  burst.told = in.text();
  burst.lifted = in.truth();
  burst.opened = in.time();
  burst.configuring = in.maybe_time();
  burst.started = in.maybe_time();
  burst.retry_at = in.maybe_time();
  return burst;
}

void write_row(SQLite::Database& database, const HookOrder& order) {
  SQLite::Statement old(database, "DELETE FROM orders WHERE name = ?");
  old.bind(1, order.name);
  old.exec();
  Writer(database, "orders", 5)
      .put(order.name)
      .put(order.kind)
      .put(join(order.hosts, ","))
      .put(order.at)
      .put(order.done)
      .run();
}

HookOrder order_from(SQLite::Statement& row) {
  Reader in(row);
  HookOrder order;
  order.name = in.text();
  order.kind = in.text();
  const std::string hosts = in.text();
  if (!hosts.empty()) {
    order.hosts = split(hosts, ',');
  }
  order.at = in.time();
  order.done = in.truth();
  return order;
}

void write_row(SQLite::Database& database, const Event& event) {
  Writer(database, "events", 5)
      .null()
      .put(event.at)
      .put(event.job)
      .put(event.node)
      .put(event.text)
      .run();
}

Event event_from(SQLite::Statement& row) {
  Reader in(row);
  in.integer();
  Event event;
  event.at = in.time();
  event.job = in.id();
  event.node = in.text();
  event.text = in.text();
  return event;
}

}  // namespace acb::cloud

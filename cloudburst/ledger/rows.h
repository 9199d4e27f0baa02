// SPDX-License-Identifier: Apache-2.0
// Rows to and from SQLite statements; private to the ledger. Functions throw what SQLiteCpp throws,
// and BadRow for a value that no ledger of ours holds.
#pragma once

#include "cloudburst/ledger/records.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <stdexcept>

namespace acb::cloud {

struct BadRow : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void write_row(SQLite::Database& database, const Lease& lease);
void write_row(SQLite::Database& database, const Burst& burst);
void write_row(SQLite::Database& database, const HookOrder& order);
void write_row(SQLite::Database& database, const Event& event);

/// Of "SELECT *".
[[nodiscard]] Lease lease_from(SQLite::Statement& row);
[[nodiscard]] Burst burst_from(SQLite::Statement& row);
[[nodiscard]] HookOrder order_from(SQLite::Statement& row);
[[nodiscard]] Event event_from(SQLite::Statement& row);

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// The hooks' orders on disk. Taken into the ledger first, removed after: an order is seen at least
// once, and its file's name makes a second time harmless.
#pragma once

#include "base/result.h"
#include "cloudburst/ledger/records.h"

#include <filesystem>
#include <string>
#include <vector>

namespace acb::cloud {

struct Inbox {
  std::vector<HookOrder> orders;  ///< the whole ones, oldest first
  std::string unread;             ///< one that cannot be read just now, and why; "": none
};
/// A file that is no order is moved aside (".bad") with a log line.
[[nodiscard]] Result<Inbox> read_orders(const std::filesystem::path& inbox);
/// Deletes the orders' files; one that is gone already is fine.
[[nodiscard]] Status remove_orders(const std::filesystem::path& inbox,
                                   const std::vector<HookOrder>& orders);

}  // namespace acb::cloud

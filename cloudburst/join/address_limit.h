// SPDX-License-Identifier: Apache-2.0
// Slows down whoever shows wrong secrets: each address may be refused a number of times in a row,
// and then once per interval. Pure but for what it remembers; not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace acb::cloud {

class AddressLimit {
 public:
  using Time = std::chrono::milliseconds;  ///< of any steady clock
  AddressLimit(int burst, Time interval, std::size_t addresses)
      : burst_(burst), interval_(interval), most_addresses_(addresses) {}

  /// Whether the address may try now.
  [[nodiscard]] bool may_try(const std::string& address, Time now) const;
  /// It tried, and was refused.
  void refused(const std::string& address, Time now);

 private:
  int burst_;
  Time interval_;
  std::size_t most_addresses_;
  /// When all of an address's refusals are paid off, one interval each.
  std::map<std::string, Time> settled_at_;
};

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/idempotency.h"

#include <utility>

namespace acb::sim {

IdempotencyStore::Claim IdempotencyStore::claim(
    const std::string& key,
    const std::string& body,
    WallTime now,
    const std::function<bool(const std::string& made)>& is_gone) {
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.in_flight) {
    return {Verdict::in_flight, {}, {}};
  }
  if (found == entries_.end() || now - found->second.at >= kKeyLife) {
    entries_.insert_or_assign(key, Entry{body});
    return {};
  }
  const Entry& entry = found->second;
  if (entry.body != body) {
    return {Verdict::mismatch, entry.made, {}};
  }
  if (is_gone(entry.made)) {
    return {Verdict::expired, entry.made, {}};
  }
  return {Verdict::replay, entry.made, entry.reply};
}

void IdempotencyStore::complete(const std::string& key,
                                std::string made,
                                std::string reply,
                                WallTime now) {
  Entry& entry = entries_[key];
  entry.in_flight = false;
  entry.made = std::move(made);
  entry.reply = std::move(reply);
  entry.at = now;
}

void IdempotencyStore::abandon(const std::string& key) {
  entries_.erase(key);
}

}  // namespace acb::sim

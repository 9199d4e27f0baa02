// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/join/address_limit.h"

#include <algorithm>

namespace acb::cloud {

bool AddressLimit::may_try(const std::string& address, Time now) const {
  const auto found = settled_at_.find(address);
  return found == settled_at_.end() || found->second - now <= interval_ * (burst_ - 1);
}

void AddressLimit::refused(const std::string& address, Time now) {
  if (settled_at_.size() >= most_addresses_) {
    std::erase_if(settled_at_, [&](const auto& entry) { return entry.second <= now; });
  }
  if (settled_at_.size() >= most_addresses_ && !settled_at_.contains(address)) {
    // Full of offenders: forget the one that is nearest to being forgiven.
    settled_at_.erase(
        std::min_element(settled_at_.begin(), settled_at_.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        }));
  }
  Time& settled = settled_at_[address];
  settled = std::max(settled, now) + interval_;
}

}  // namespace acb::cloud

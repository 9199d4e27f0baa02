// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/admission.h"

#include "cloudburst/join/digest.h"

namespace acb::cloud {

Result<const Lease*> Admission::lease_for(const JoinRequest& request,
                                          const Book& book,
                                          WallTime now) const {
  for (const auto& [key, lease] : book.leases) {
    const auto guest = guests_.find(key);
    const bool again = guest != guests_.end() && now - guest->second.since < kAgain &&
                       guest->second.request.address == request.address &&
                       guest->second.request.instance == request.instance;
    const std::string& waits_for =
        again ? guest->second.request.secret_sha256 : lease.secret_sha256;
    if (waits_for.empty() || !same_text(waits_for, request.secret_sha256)) {
      continue;
    }
    // A node may be up before the answer to its create call has reached us.
    if (lease.state != LeaseState::booting && lease.state != LeaseState::creating) {
      return fail(ErrorCode::denied,
                  "join: " + lease.node + ": its lease is " + std::string(name_of(lease.state)));
    }
    if (!lease.instance_id.empty() && lease.instance_id != request.instance) {
      return fail(ErrorCode::denied,
                  "join: " + lease.node + ": asked by " + request.instance + ", rented is " +
                      lease.instance_id);
    }
    return &lease;
  }
  return fail(ErrorCode::not_found,
              "join: " + request.address + ": no lease waits for this secret");
}

void Admission::let_in(const Lease& lease, const JoinRequest& request, WallTime now) {
  std::erase_if(guests_, [&](const auto& entry) { return now - entry.second.since >= kAgain; });
  guests_.try_emplace(lease.key, Guest{request, now});
}

}  // namespace acb::cloud

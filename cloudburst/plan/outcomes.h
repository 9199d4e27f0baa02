// SPDX-License-Identifier: Apache-2.0
// How a lease goes on after a call to the cloud has ended. Pure: old row and answer to new row. The
// lease may have changed since the call began (its job was cancelled, say): what is being released
// stays so.
#pragma once

#include "cloudburst/ledger/ledger.h"
#include "cloudburst/provider/errors.h"
#include "cloudburst/provider/provider.h"

#include <optional>

namespace acb::cloud {

/// Takes over what the cloud says: id, address, bill, loss; closes the lease once it is over.
[[nodiscard]] Lease observe(Lease lease, const Allocation& allocation, WallTime now);

[[nodiscard]] Lease after_create(Lease lease,
                                 const CloudResult<Allocation>& answer,
                                 WallTime now,
                                 double jitter01);
[[nodiscard]] Lease after_look_up(Lease lease,
                                  const CloudResult<std::optional<Allocation>>& answer,
                                  WallTime now,
                                  double jitter01);
[[nodiscard]] Lease after_get(Lease lease,
                              const CloudResult<Allocation>& answer,
                              WallTime now,
                              double jitter01);
[[nodiscard]] Lease after_release(Lease lease,
                                  const CloudResult<Provider::Released>& answer,
                                  WallTime now,
                                  double jitter01);

/// The lease as an admin closes it, whose machine the cloud does not know (any more: the key may be
/// another account's by now). `not_found`, or `invalid` where it is not being given back or the
/// cloud has said anything else.
[[nodiscard]] Result<Lease> closed_by_hand(const Book& book, const std::string& key, WallTime now);

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// Whose join request it is: the lease that waits for the secret shown. Pure but for what it
// remembers; not thread-safe.
#pragma once

#include "cloudburst/join/join_server.h"
#include "cloudburst/ledger/ledger.h"

#include <chrono>
#include <map>
#include <string>

namespace acb::cloud {

class Admission {
 public:
  /// The lease, one of `book`. A secret opens once, and again within a minute to whoever it has
  /// opened to before: an answer may get lost. Neither opens to a node that has registered, since
  /// jobs run there, which may read its user data. `not_found`, `denied`.
  [[nodiscard]] Result<const Lease*> lease_for(const JoinRequest& request,
                                               const Book& book,
                                               WallTime now) const;
  /// The lease's secret was used up for this request.
  void let_in(const Lease& lease, const JoinRequest& request, WallTime now);

 private:
  static constexpr std::chrono::minutes kAgain{1};
  struct Guest {
    JoinRequest request;
    WallTime since{};
  };
  std::map<std::string, Guest> guests_;  ///< of the last minute, by lease key
};

}  // namespace acb::cloud

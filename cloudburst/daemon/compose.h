// SPDX-License-Identifier: Apache-2.0
// The exact request of a lease: the site's user data with a fresh one-time secret in it.
#pragma once

#include "base/result.h"
#include "cloudburst/config/config.h"
#include "cloudburst/ledger/records.h"

#include <chrono>
#include <string>

namespace acb::cloud {

struct JoinPlace {
  std::string url;        ///< https://host:port
  std::string ca_base64;  ///< the certificate that nodes accept
};

/// Fills `request` and `secret_sha256` of a new lease. Reads the template anew, so that an edit
/// counts for the next node. `ends` goes into the deadline tag: nobody needs the node after it.
[[nodiscard]] Status compose_request(Lease& lease,
                                     const Config& config,
                                     const JoinPlace& join,
                                     WallTime ends);

/// That the site's template can be read and lets a node in: told at the start, not with the first
/// job.
[[nodiscard]] Status check_template(const Config& config);

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// When to try a call again, as functions of their arguments alone.
#pragma once

#include "cloudburst/provider/errors.h"

#include <chrono>
#include <optional>

namespace acb::cloud {

/// A create call is tried this often in all; giving back is tried for ever.
constexpr int kCreateTries = 5;

/// Whether the same create may be sent again for this class (throttled, ambiguous). The others want
/// another offer, a person, or a look at what exists.
[[nodiscard]] bool is_worth_retrying(ErrorClass cls);

/// How long to wait after the failure of try number `attempt` (1, 2, ...): 2, 4, 8, 16, 30, 30, ...
/// s scaled by 0.75 to 1.25 with `jitter01` from [0, 1], and kept within 2 to 30 s. Classes that
/// repeating alone cannot mend (quota, auth, bad_request, conflict, gone) wait the longest at once.
/// A Retry-After is a floor, itself taken as at most an hour, with up to 1 s of jitter above it.
[[nodiscard]] std::chrono::milliseconds retry_delay(int attempt,
                                                    ErrorClass cls,
                                                    std::optional<std::chrono::seconds> retry_after,
                                                    double jitter01);

}  // namespace acb::cloud

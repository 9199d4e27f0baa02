// SPDX-License-Identifier: Apache-2.0
// Asking the daemon over its control socket. Stateless and thread-safe.
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <chrono>
#include <filesystem>

namespace acb::cloud {

/// One request, one reply, within `limit` in all: also when the daemon hangs and its backlog is
/// full. Errors: `unavailable` (nobody listens), `denied` (no access to the socket), `timeout`,
/// `corrupt` (not a JSON line), or the code and message of the daemon's error reply.
[[nodiscard]] Result<Json> control_call(const std::filesystem::path& socket,
                                        const Json& request,
                                        std::chrono::milliseconds limit);

}  // namespace acb::cloud

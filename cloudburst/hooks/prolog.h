// SPDX-License-Identifier: Apache-2.0
// Holds a burst's job back until its cloud nodes have registered, so that slurmctld starts it
// within a moment of that (by itself it looks every 30 s only).
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <functional>

namespace acb::cloud {

struct PrologWait {
  std::int64_t job = 0;
  std::int64_t restart = -1;  ///< -1: the job's present one, which the daemon's first answer tells
};

/// How the waiting ended.
enum class PrologEnd {
  go,         ///< the daemon said so
  no_daemon,  ///< no sound answer from it for kPrologPatience
};

constexpr std::chrono::milliseconds kPrologPatience{5000};
constexpr std::chrono::milliseconds kPrologInterval{100};

/// What the wait touches: the daemon, the clock, and sleeping.
struct PrologWorld {
  std::function<Result<Json>(const Json& request, std::chrono::milliseconds limit)> ask;
  std::function<std::chrono::milliseconds()> now;  ///< of any steady clock
  std::function<void(std::chrono::milliseconds)> sleep;
};

/// Asks every kPrologInterval until the daemon says go, however long that takes, or has not
/// answered for kPrologPatience.
[[nodiscard]] PrologEnd wait_for_go(PrologWait wait, const PrologWorld& world);

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// The wall between Slurm's C frames and our code: whatever is thrown ends here.
#pragma once

#include "spank_plugin/slurm_headers.h"

#include <cerrno>
#include <exception>

namespace acb::spank {

/// Keeps errno as it was: slurmctld looks at it after its plugins, and a file that is not there is
/// no fault of the request's.
class ErrnoKeeper {
 public:
  ErrnoKeeper() = default;
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;
  ~ErrnoKeeper() { errno = saved_; }

 private:
  const int saved_ = errno;
};

/// Runs `body`; an exception is logged through Slurm and becomes `failed`. Callbacks return 0 or
/// -1: before 25.05 Slurm takes every positive code, ESPANK_ERROR among them, for a success.
template <typename Body>
[[nodiscard]] int guarded(int failed, Body body) noexcept {
  const ErrnoKeeper keeper;
  try {
    return body();
  } catch (const std::exception& error) {
    slurm_error("autocloud: internal error: %s", error.what());
  } catch (...) {
    slurm_error("autocloud: internal error: an exception of an unknown type");
  }
  return failed;
}

}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
// The subcommands of cloudsim.
#pragma once

namespace acb::sim {

/// The exit code: 0 done, 1 failed, 2 wrong usage.
[[nodiscard]] int run_command(int argc, char** argv);

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
// Finds and ends the processes that a dead mpirun has left on this node. They are known by the
// environment that they were started with: it names the run and the start, and children inherit it.
// Open MPI gives each rank a process group of its own, so no group or session holds them all.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace acb::train {

/// Whether an environment, as /proc/PID/environ holds it (entries end with NUL), is of `run` and of
/// start `start` or an earlier one. A process without AUTOCLOUD_START is the supervisor or an
/// agent.
[[nodiscard]] bool belongs_to(std::string_view environment, std::string_view run, int start);

/// This user's living processes of `run`, up to start `start`. Zombies are not counted.
[[nodiscard]] std::vector<pid_t> leftover_processes(std::string_view run, int start);

/// SIGKILLs them, again and again until none is left; false if some are still there after `limit`
/// (a process inside a hanging driver call).
[[nodiscard]] bool end_leftovers(std::string_view run, int start, std::chrono::milliseconds limit);

/// Removes the shared memory of dead ranks from `root` (/dev/shm): Open MPI names a rank's segment
/// vader_segment.<host>..., and one that is killed cannot remove its own. Only this user's on this
/// host go, that no process here maps and that nobody has touched for `age`. The number removed.
int remove_dead_segments(const std::filesystem::path& root,
                         std::string_view host,
                         std::chrono::seconds age);

}  // namespace acb::train

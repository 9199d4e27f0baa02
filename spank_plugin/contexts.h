// SPDX-License-Identifier: Apache-2.0
// What the SPANK plugin does in each of Slurm's contexts; dispatch.cpp calls these. They return 0
// or -1 and may throw.
#pragma once

#include "spank_plugin/options.h"
#include "spank_plugin/slurm_headers.h"

#include <string_view>
#include <vector>

namespace acb::spank {

using Arguments = std::vector<std::string_view>;  ///< of the plugstack.conf line

/// sbatch and salloc: takes the options and labels the job.
namespace allocator {
int init(spank_t spank, const Arguments& arguments);
int init_post_opt(spank_t spank);
}  // namespace allocator

/// srun: refuses the options. Steps of a burst run as any others.
namespace srun {
int init(spank_t spank, const Arguments& arguments);
}  // namespace srun

/// slurmstepd: the tasks' environment.
namespace stepd {
int init(spank_t spank, const Arguments& arguments);
/// In the forked child, just before the program: no allocation, no locks.
int task_init(spank_t spank);
}  // namespace stepd

}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
// A job's nodes as Slurm's environment tells them, and what that environment must say once some of
// them are gone. Pure functions.
#pragma once

#include "base/result.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acb::train {

/// A set of environment variables; nullopt removes one.
using EnvironmentChange = std::map<std::string, std::optional<std::string>>;

/// The names in a Slurm host list: "own-[0-1,07-08],burst-3" (leading zeros are kept, several
/// brackets multiply), at most 65536 of them.
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// Slurm's counts per node: "2(x3),1" is 2 2 2 1; and back.
[[nodiscard]] Result<std::vector<int>> parse_counts(std::string_view what, std::string_view text);
[[nodiscard]] std::string format_counts(const std::vector<int>& counts);

struct NodeShare {
  std::string name;
  int tasks = 1;  ///< ranks that Slurm grants the node
  int cpus = 1;   ///< CPUs of the job on it
};

/// The nodes of the allocation from SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE and
/// SLURM_JOB_CPUS_PER_NODE; counts that are absent are 1 for tasks. `invalid` where the counts do
/// not fit the nodes.
[[nodiscard]] Result<std::vector<NodeShare>> parse_allocation(
    const std::map<std::string, std::string>& environment);

/// What makes srun and mpirun see `nodes` as the whole allocation. SLURM_OVERLAP=1 lets the new
/// mpirun's step start beside the dead one's, which keeps its resources. The names are a plain
/// comma list, which is a valid host list.
[[nodiscard]] EnvironmentChange environment_for(const std::vector<NodeShare>& nodes);

/// mpirun's arguments with a given number of ranks (-n, -np, --np, -c) lowered to `slots` where it
/// is higher: Open MPI refuses more ranks than slots. Only mpirun's own options are looked at, up
/// to the program.
[[nodiscard]] std::vector<std::string> fit_ranks(std::vector<std::string> arguments, int slots);
/// Whether mpirun's own options export variables with -x.
[[nodiscard]] bool exports_variables(const std::vector<std::string>& arguments);

}  // namespace acb::train

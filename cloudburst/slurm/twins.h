// SPDX-License-Identifier: Apache-2.0
// Whether a burst twin keeps the rules of its partition: job_submit moves a job from one to the
// other, and Slurm then knows the twin's alone.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace acb::cloud {

/// What of a partition decides who may run there, how long and on how much.
struct PartitionRules {
  /// AllowGroups, AllowAccounts, AllowQos, AllocNodes, DenyAccounts, DenyQos, QoS, ReqResv,
  /// RootOnly;
  /// "" where not set.
  std::map<std::string, std::string> lists;
  std::uint32_t max_minutes = 0;
  std::uint32_t max_nodes = 0;
  std::uint32_t tier = 0;
};

/// In words, what the twin allows that its partition does not.
[[nodiscard]] std::vector<std::string> faults_of_twin(const PartitionRules& partition,
                                                      const PartitionRules& twin);
/// Asks slurmctld, on the thread of the SlurmClient; `twins` as in autocloud.toml. One line per
/// fault.
[[nodiscard]] Result<std::vector<std::string>> check_twins(
    const std::map<std::string, std::string>& twins);

}  // namespace acb::cloud

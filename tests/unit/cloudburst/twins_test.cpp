// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/slurm/twins.h"

#include <gtest/gtest.h>

#include <functional>

namespace acb::cloud {
namespace {

constexpr std::uint32_t kInfinite = 0xffffffff;

PartitionRules partition() {
  return {{{"AllowGroups", "physics"}, {"DenyQos", ""}}, 300, 4, 1};
}

TEST(FaultsOfTwin, TellWhatItAllowsBeyondItsPartition) {
  struct Row {
    const char* name;
    std::function<void(PartitionRules&)> change;
    const char* fault;
  };
  for (const Row& row : {
           Row{"the same", [](PartitionRules&) {}, ""},
           Row{"tighter", [](PartitionRules& twin) { twin.max_minutes = 60; }, ""},
           Row{"a list more", [](PartitionRules& twin) { twin.lists["DenyQos"] = "low"; }, ""},
           Row{"open to all",
               [](PartitionRules& twin) { twin.lists.clear(); },
               "AllowGroups is not set, the partition's is physics"},
           Row{"longer",
               [](PartitionRules& twin) { twin.max_minutes = kInfinite; },
               "MaxTime is UNLIMITED minutes, the partition's is 300"},
           Row{"larger",
               [](PartitionRules& twin) { twin.max_nodes = kInfinite; },
               "MaxNodes is UNLIMITED, the partition's is 4"},
           Row{"before all others",
               [](PartitionRules& twin) { twin.tier = 2; },
               "PriorityTier is 2, the partition's is 1: bursts go before all others"},
       }) {
    PartitionRules twin = partition();
    row.change(twin);
    const std::vector<std::string> faults = faults_of_twin(partition(), twin);
    ASSERT_EQ(faults.size(), *row.fault == '\0' ? 0U : 1U) << row.name;
    EXPECT_EQ(faults.empty() ? "" : faults.front(), row.fault) << row.name;
  }
}

}  // namespace
}  // namespace acb::cloud

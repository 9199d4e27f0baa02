// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/slurm/twins.h"

#include "cloudburst/slurm/releases.h"

#include <cerrno>
#include <memory>

namespace acb::cloud {

namespace {

struct FreePartitions {
  void operator()(partition_info_msg_t* message) const { slurm_free_partition_info_msg(message); }
};

std::string string_of(const char* text) {
  return text == nullptr ? std::string() : text;
}

PartitionRules rules_of(const partition_info_t& info) {
  PartitionRules rules;
  rules.lists = {{"AllowGroups", string_of(info.allow_groups)},
                 {"AllowAccounts", string_of(info.allow_accounts)},
                 {"AllowQos", string_of(info.allow_qos)},
                 {"AllocNodes", string_of(info.allow_alloc_nodes)},
                 {"DenyAccounts", string_of(info.deny_accounts)},
                 {"DenyQos", string_of(info.deny_qos)},
                 {"QoS", string_of(info.qos_char)},
                 {"ReqResv", (info.flags & PART_FLAG_REQ_RESV) != 0 ? "YES" : ""},
                 {"RootOnly", (info.flags & PART_FLAG_ROOT_ONLY) != 0 ? "YES" : ""}};
  rules.max_minutes = info.max_time;
  rules.max_nodes = info.max_nodes;
  rules.tier = info.priority_tier;
  return rules;
}

std::string shown(const std::string& value) {
  return value.empty() ? "not set" : value;
}

/// INFINITE is the largest number.
std::string shown(std::uint32_t value) {
  return value == INFINITE ? "UNLIMITED" : std::to_string(value);
}

}  // namespace

std::vector<std::string> faults_of_twin(const PartitionRules& partition,
                                        const PartitionRules& twin) {
  std::vector<std::string> faults;
  for (const auto& [name, value] : partition.lists) {
    const auto found = twin.lists.find(name);
    const std::string other = found == twin.lists.end() ? "" : found->second;
    if (!value.empty() && other != value) {
      faults.push_back(name + " is " + shown(other) + ", the partition's is " + value);
    }
  }
  if (twin.max_minutes > partition.max_minutes) {
    faults.push_back("MaxTime is " + shown(twin.max_minutes) + " minutes, the partition's is " +
                     shown(partition.max_minutes));
  }
  if (twin.max_nodes == INFINITE && partition.max_nodes != INFINITE) {
    faults.push_back("MaxNodes is UNLIMITED, the partition's is " + shown(partition.max_nodes));
  }
  if (twin.tier > partition.tier) {
    faults.push_back("PriorityTier is " + std::to_string(twin.tier) + ", the partition's is " +
                     std::to_string(partition.tier) + ": bursts go before all others");
  }
  return faults;
}

Result<std::vector<std::string>> check_twins(const std::map<std::string, std::string>& twins) {
  partition_info_msg_t* loaded = nullptr;
  if (slurm_load_partitions(0, &loaded, kShowAll) != SLURM_SUCCESS) {
    return fail(ErrorCode::unavailable,
                std::string("slurm: loading partitions: ") + slurm_strerror(errno));
  }
  const std::unique_ptr<partition_info_msg_t, FreePartitions> message(loaded);
  std::map<std::string, PartitionRules> known;
  for (std::uint32_t i = 0; i < message->record_count; ++i) {
    const partition_info_t& info = message->partition_array[i];
    known[string_of(info.name)] = rules_of(info);
  }
  std::vector<std::string> lines;
  for (const auto& [partition, twin] : twins) {
    const std::string place = "twins." + partition + ": partition " + twin;
    if (!known.contains(partition) || !known.contains(twin)) {
      lines.push_back("twins." + partition + ": slurm.conf has no partition " +
                      (known.contains(partition) ? twin : partition));
      continue;
    }
    for (const std::string& fault : faults_of_twin(known[partition], known[twin])) {
      lines.push_back(place + ": " + fault);
    }
  }
  return lines;
}

}  // namespace acb::cloud

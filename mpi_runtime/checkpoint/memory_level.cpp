// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/memory_level.h"

#include <fmt/format.h>

#include <algorithm>

namespace acb::train {

namespace fs = std::filesystem;

std::vector<int> partners(std::span<const std::string> nodes) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<int>> ranks_on;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    if (!ranks_on.contains(nodes[rank])) {
      order.push_back(nodes[rank]);
    }
    ranks_on[nodes[rank]].push_back(static_cast<int>(rank));
  }
  std::vector<int> result(nodes.size(), -1);
  for (std::size_t i = 0; i < order.size() && order.size() > 1; ++i) {
    const std::vector<int>& here = ranks_on[order[i]];
    const std::vector<int>& there = ranks_on[order[(i + 1) % order.size()]];
    for (std::size_t j = 0; j < here.size(); ++j) {
      result[static_cast<std::size_t>(here[j])] = there[j % there.size()];
    }
  }
  return result;
}

MemoryLevel::MemoryLevel(Communicator& comm,
                         fs::path folder,
                         std::span<const std::string> nodes,
                         std::string set)
    : comm_(comm), folder_(std::move(folder)), set_(std::move(set)), partners_(partners(nodes)) {}

Result<MemoryShard*> MemoryLevel::shard_for(int index, bool own, std::size_t bytes) {
  const auto found = shards_.find(index);
  if (found != shards_.end()) {
    return &found->second;
  }
  // Counters in the small state grow by digits, not by megabytes.
  constexpr std::size_t kRoom = std::size_t{1} << 16;
  const fs::path file =
      folder_ / fmt::format("{}.{}-{}.{}", set_, index, comm_.size(), own ? "own" : "copy");
  ACB_TRY_ASSIGN(MemoryShard shard, MemoryShard::create(file, bytes + kRoom));
  return &shards_.emplace(index, std::move(shard)).first->second;
}

Result<Status> MemoryLevel::save(const ShardPlan& plan, std::int64_t step) {
  const auto write = [&]() -> Result<std::span<const std::byte>> {
    ACB_TRY_ASSIGN(MemoryShard * shard, shard_for(comm_.rank(), true, plan.bytes));
    return shard->write(
        step, plan.bytes, [&](std::span<std::byte> into) { write_shard(plan, into); });
  };
  const auto written = write();
  // A rank that could not write still takes part in the exchange, with nothing to send.
  ACB_TRY_ASSIGN(const Status copied,
                 exchange_copies(written.value_or(std::span<const std::byte>()), step));
  return written ? copied : written.map([](const auto&) {});
}

Result<Status> MemoryLevel::exchange_copies(std::span<const std::byte> mine, std::int64_t step) {
  const int to = partners_[static_cast<std::size_t>(comm_.rank())];
  if (to < 0) {
    return Status();
  }
  const std::uint64_t length = mine.size();
  const std::vector<Send> announce = {{to, std::as_bytes(std::span(&length, 1))}};
  std::map<int, std::uint64_t> lengths;
  std::vector<Receive> announced;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (partners_[static_cast<std::size_t>(rank)] == comm_.rank()) {
      announced.push_back({rank, std::as_writable_bytes(std::span(&lengths[rank], 1))});
    }
  }
  ACB_TRY(comm_.exchange(announce, announced));
  std::vector<Receive> receives;
  for (const auto& [rank, bytes] : lengths) {
    incoming_[rank].resize(bytes);
    receives.push_back({rank, incoming_[rank]});
  }
  const std::vector<Send> sends = {{to, mine}};
  ACB_TRY(comm_.exchange(sends, receives));
  Status result;
  for (const auto& [rank, bytes] : incoming_) {
    if (bytes.empty()) {
      continue;
    }
    const auto shard = shard_for(rank, false, bytes.size());
    const Status written = shard
                               ? (*shard)
                                     ->write(step,
                                             bytes.size(),
                                             [&bytes = bytes](std::span<std::byte> into) {
                                               std::copy(bytes.begin(), bytes.end(), into.begin());
                                             })
                                     .map([](const auto&) {})
                               : Status(tl::unexpected<Error>(shard.error()));
    if (!written) {
      result = written;
    }
  }
  return result;
}

void MemoryLevel::drop_other_sets() const {
  for (const fs::path& file : memory_files(folder_)) {
    if (!file.filename().string().starts_with(set_ + ".")) {
      std::error_code ignored;
      fs::remove(file, ignored);
    }
  }
}

}  // namespace acb::train

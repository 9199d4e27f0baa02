// SPDX-License-Identifier: Apache-2.0
// Runs a function on every rank of a world of threads.
#pragma once

#include "mpi_runtime/comm/communicator.h"

#include <functional>
#include <thread>
#include <vector>

namespace acb::train {

/// A rank that returns leaves the world: others that wait for it get an error instead of a hang.
inline void run_ranks(int size, const std::function<void(Communicator&)>& body) {
  auto ranks = make_thread_ranks(size);
  std::vector<std::jthread> threads;
  for (auto& rank : ranks) {
    threads.emplace_back([&body, own = std::move(rank)] { body(*own); });
  }
}

}  // namespace acb::train

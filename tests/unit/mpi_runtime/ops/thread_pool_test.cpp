// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/ops/thread_pool.h"

#include <gtest/gtest.h>

namespace acb::train {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceInEveryRound) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (const std::size_t tasks : {0U, 1U, 3U, 100U}) {
      std::vector<std::atomic<int>> calls(tasks);
      std::atomic<bool> worker_in_range{true};
      pool.run(tasks, [&](std::size_t number, int worker) {
        ++calls[number];
        if (worker < 0 || worker >= threads) {
          worker_in_range = false;
        }
      });
      for (const auto& count : calls) {
        EXPECT_EQ(count, 1) << tasks << " tasks on " << threads << " threads";
      }
      EXPECT_TRUE(worker_in_range);
    }
  }
}

}  // namespace
}  // namespace acb::train

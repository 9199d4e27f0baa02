// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace acb::train {
namespace {

std::vector<std::uint64_t> epoch(const SampleOrder& order, std::uint64_t windows, int number) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t i = 0; i < windows; ++i) {
    found.push_back(order.window(static_cast<std::uint64_t>(number) * windows + i));
  }
  return found;
}

TEST(SampleOrder, EveryEpochSeesEveryWindowOnce) {
  for (const std::uint64_t windows : {1U, 2U, 3U, 4U, 5U, 64U, 1000U, 4097U}) {
    const SampleOrder order(7, windows);
    for (const int number : {0, 1, 5}) {
      auto found = epoch(order, windows, number);
      std::sort(found.begin(), found.end());
      for (std::uint64_t i = 0; i < windows; ++i) {
        ASSERT_EQ(found[i], i) << windows << " windows, epoch " << number;
      }
    }
  }
}

TEST(SampleOrder, DependsOnSeedAndEpoch) {
  const SampleOrder order(7, 1000);
  EXPECT_EQ(epoch(order, 1000, 0), epoch(SampleOrder(7, 1000), 1000, 0));
  EXPECT_NE(epoch(order, 1000, 0), epoch(order, 1000, 1));
  EXPECT_NE(epoch(order, 1000, 0), epoch(SampleOrder(8, 1000), 1000, 0));
}

TEST(SampleOrder, SpreadsNeighbours) {
  const SampleOrder order(7, 1000);
  int ascending = 0;
  for (std::uint64_t i = 1; i < 1000; ++i) {
    ascending += order.window(i) > order.window(i - 1) ? 1 : 0;
  }
  EXPECT_NEAR(ascending, 500, 60);
}

}  // namespace
}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace acb::train {
namespace {

TEST(LearningRate, WarmsUpThenFollowsHalfACosine) {
  const Schedule schedule{.most = 1.0, .least = 0.1, .warmup_steps = 10, .steps = 110};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 1.0);
  for (int step = 11; step <= 110; ++step) {
    const double wanted = 0.1 + 0.45 * (1 + std::cos(M_PI * (step - 10) / 100.0));
    EXPECT_NEAR(learning_rate(schedule, step), wanted, 1e-12) << step;
  }
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 500), 0.1);
}

TEST(LearningRate, StartsAtTheTopWithoutAWarmUp) {
  EXPECT_NEAR(learning_rate({.most = 1, .least = 0, .warmup_steps = 0, .steps = 1000}, 1), 1, 1e-5);
}

TEST(BiasCorrection, IsThatOfAdam) {
  for (const int count : {1, 2, 7, 1000}) {
    EXPECT_NEAR(bias_correction(0.95, count), 1 / (1 - std::pow(0.95, count)), 1e-12) << count;
  }
}

}  // namespace
}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/interval.h"

#include <gtest/gtest.h>

namespace acb::train {
namespace {

TEST(Interval, PriorIsAnHourAndEvenLuck) {
  EXPECT_DOUBLE_EQ(mean_time_between_incidents({}), 3600);
  EXPECT_DOUBLE_EQ(notice_probability({}), 0.5);
}

TEST(Interval, UpTimeWithoutIncidentCounts) {
  EXPECT_DOUBLE_EQ(mean_time_between_incidents({7200, 0, 0}), 7200);
  EXPECT_DOUBLE_EQ(mean_time_between_incidents({7200, 2, 0}), 3600);
}

TEST(Interval, IsYoungsWhereOnlyLossesThatCostWorkCount) {
  // C = 2 s, M = 3600 s, p = 1/2: sqrt(2 * 2 * 3600 / 0.5)
  EXPECT_NEAR(save_interval(2, 10, {}), 169.7056, 1e-3);
  // Ten incidents, all saved in time: p = 11/12
  EXPECT_NEAR(save_interval(2, 10, {36000, 10, 10}), 415.6922, 1e-3);
}

TEST(Interval, StaysBetweenTheWriteAndAnHour) {
  EXPECT_DOUBLE_EQ(save_interval(0.001, 60, {}), 60);
  EXPECT_DOUBLE_EQ(save_interval(600, 1, {360000, 50, 50}), 3600);
}

}  // namespace
}  // namespace acb::train

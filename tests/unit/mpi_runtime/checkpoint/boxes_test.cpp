// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/boxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace acb::train {
namespace {

using ::testing::ElementsAre;
using Extents = std::vector<std::int64_t>;

TEST(Boxes, BecomeRunsOfTheFlatTensor) {
  EXPECT_THAT(runs_of(Extents{4, 5}, {{1, 0}, {2, 5}}), ElementsAre(train::Run{5, 10, 0}));
  EXPECT_THAT(runs_of(Extents{4, 5}, {{1, 2}, {2, 2}}),
              ElementsAre(train::Run{7, 2, 0}, train::Run{12, 2, 2}));
  EXPECT_THAT(runs_of(Extents{4, 5}, {{3}, {9}}), ElementsAre(train::Run{3, 9, 0}));
  EXPECT_THAT(runs_of(Extents{7}, {{2}, {3}}), ElementsAre(train::Run{2, 3, 0}));
  EXPECT_THAT(runs_of(Extents{2, 2, 3}, {{0, 1, 1}, {2, 1, 2}}),
              ElementsAre(train::Run{4, 2, 0}, train::Run{10, 2, 2}));
}

TEST(Boxes, ColumnsAndFlatRangesMeet) {
  const auto columns = runs_of(Extents{4, 5}, {{0, 3}, {4, 2}});
  const auto flat = runs_of(Extents{4, 5}, {{4}, {10}});
  EXPECT_THAT(overlaps(columns, flat),
              ElementsAre(Overlap{4, 1, 1, 0}, Overlap{8, 2, 2, 4}, Overlap{13, 1, 4, 9}));
}

TEST(Boxes, CoverageCountsEachElementOnce) {
  EXPECT_EQ(covered({{0, 4, 0, 0}, {2, 4, 0, 0}, {10, 1, 0, 0}}), 7);
  EXPECT_EQ(covered({}), 0);
}

TEST(Boxes, OutsideTheTensorAreRefused) {
  EXPECT_TRUE(check_box("t", Extents{4, 5}, {{0, 0}, {4, 5}}));
  EXPECT_TRUE(check_box("t", Extents{4, 5}, {{19}, {1}}));
  EXPECT_FALSE(check_box("t", Extents{4, 5}, {{19}, {2}}));
  EXPECT_FALSE(check_box("t", Extents{4, 5}, {{1, 0}, {4, 5}}));
  EXPECT_FALSE(check_box("t", Extents{4, 5}, {{-1, 0}, {1, 1}}));
  EXPECT_FALSE(check_box("t", Extents{4, 5}, {{0, 0, 0}, {1, 1, 1}}));
  EXPECT_FALSE(check_box("t", Extents{1 << 30, 1 << 30}, {{0, 0}, {1, 1}}));
}

}  // namespace
}  // namespace acb::train

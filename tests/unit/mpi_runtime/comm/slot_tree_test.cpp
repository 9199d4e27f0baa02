// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/comm/slot_tree.h"

#include "mpi_runtime/model/layout.h"
#include "tests/unit/mpi_runtime/support/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace acb::train {
namespace {

using Vectors = std::vector<std::vector<float>>;

// Magnitudes over many powers of two: nearly every order of adding gives other bits.
Vectors gradients(std::size_t slots, std::size_t elements) {
  std::mt19937 random(static_cast<unsigned>(slots * 1000 + elements));
  std::normal_distribution<float> normal;
  Vectors all(slots, std::vector<float>(elements));
  for (auto& slot : all) {
    for (float& value : slot) {
      value = std::ldexp(normal(random), static_cast<int>(random() % 16));
    }
  }
  return all;
}

// The tree, written down once more and evaluated plainly in one place.
std::vector<float> plain_sum(const Vectors& slots, std::size_t begin, std::size_t end) {
  if (end - begin == 1) {
    return slots[begin];
  }
  std::size_t left_slots = 1;
  while (left_slots * 2 < end - begin) {
    left_slots *= 2;
  }
  std::vector<float> left = plain_sum(slots, begin, begin + left_slots);
  const std::vector<float> right = plain_sum(slots, begin + left_slots, end);
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] += right[i];
  }
  return left;
}

std::vector<float> reduced_by_ranks(const Vectors& slots, int ranks) {
  const std::size_t elements = slots.front().size();
  std::vector<float> whole(elements);
  run_ranks(ranks, [&](Communicator& comm) {
    SlotReducer reducer(comm, slots.size(), elements);
    for (std::size_t slot = reducer.slots().begin; slot < reducer.slots().end; ++slot) {
      ASSERT_TRUE(reducer.add(slot, slots[slot]));
    }
    ASSERT_TRUE(
        reducer.finish(std::span(whole).subspan(reducer.slice().begin, reducer.slice().size())));
  });
  return whole;
}

class SlotCounts : public ::testing::TestWithParam<std::size_t> {};

TEST_P(SlotCounts, SumHasTheSameBitsForEveryNumberOfRanks) {
  const std::size_t first = GetParam();
  for (std::size_t slots = first; slots < first + 4; ++slots) {
    const Vectors all = gradients(slots, 5 * kBlock / 2);
    const std::vector<float> expected = plain_sum(all, 0, slots);
    for (int ranks = 1; ranks <= static_cast<int>(std::min<std::size_t>(slots, 12)); ++ranks) {
      EXPECT_EQ(reduced_by_ranks(all, ranks), expected) << slots << " slots, " << ranks << " ranks";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, SlotCounts, ::testing::Range<std::size_t>(1, 49, 4));

TEST(SlotReducer, OrderMattersForTheseNumbers) {
  const Vectors all = gradients(24, 100);
  std::vector<float> in_line(100);
  for (const auto& slot : all) {
    for (std::size_t i = 0; i < slot.size(); ++i) {
      in_line[i] += slot[i];
    }
  }
  EXPECT_NE(in_line, plain_sum(all, 0, 24));
}

TEST(SlotReducer, SlicesLongerThanAChunkAreSummedInRounds) {
  const Vectors all = gradients(5, 2 * kReduceChunk + 3 * kBlock + 7);
  EXPECT_EQ(reduced_by_ranks(all, 2), plain_sum(all, 0, 5));
}

TEST(SlotReducer, IsReadyForTheNextStep) {
  const Vectors first = gradients(6, kBlock * 3);
  Vectors second = first;
  std::swap(second[0], second[5]);
  run_ranks(3, [&](Communicator& comm) {
    SlotReducer reducer(comm, 6, first.front().size());
    std::vector<float> sum(reducer.slice().size());
    for (const Vectors* step : std::initializer_list<const Vectors*>{&first, &second}) {
      for (std::size_t slot = reducer.slots().begin; slot < reducer.slots().end; ++slot) {
        ASSERT_TRUE(reducer.add(slot, (*step)[slot]));
      }
      ASSERT_TRUE(reducer.finish(sum));
      const auto expected = plain_sum(*step, 0, 6);
      EXPECT_TRUE(
          std::equal(sum.begin(),
                     sum.end(),
                     expected.begin() + static_cast<std::ptrdiff_t>(reducer.slice().begin)));
    }
  });
}

TEST(SlotReducer, RefusesASlotOutOfTurn) {
  run_ranks(1, [](Communicator& comm) {
    SlotReducer reducer(comm, 4, 8);
    const std::vector<float> values(8);
    const auto added = reducer.add(1, values);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().message, "slot reducer: slot 1 added, expected 0 of 0 to 3");
    std::vector<float> sum(8);
    EXPECT_FALSE(reducer.finish(sum));
  });
}

TEST(Subtrees, AreTheMaximalNodesInsideARange) {
  struct Row {
    std::size_t slots;
    Range held;
    std::vector<Range> expected;
  };
  const std::vector<Row> rows = {
      {24, {0, 24}, {{0, 24}}},
      {24, {8, 16}, {{8, 16}}},
      {24, {6, 12}, {{6, 8}, {8, 12}}},
      {24, {16, 24}, {{16, 24}}},
      {7, {3, 7}, {{3, 4}, {4, 7}}},
      {5, {4, 5}, {{4, 5}}},
      {5, {1, 4}, {{1, 2}, {2, 4}}},
      {5, {2, 2}, {}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(subtrees(row.slots, row.held), row.expected)
        << row.slots << " slots, " << row.held.begin << " to " << row.held.end;
  }
}

TEST(Subtrees, AreAtMostTwoWhereTheRanksDivideTwentyFourSlots) {
  for (const int ranks : {1, 2, 3, 4, 6, 8, 12, 24}) {
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_LE(subtrees(24, slots_of(24, ranks, rank)).size(), 2U) << ranks;
    }
  }
}

TEST(Slices, CoverEveryElementOnceInWholeBlocks) {
  for (const std::size_t elements : {std::size_t{1}, kBlock, 5 * kBlock, 7 * kBlock + 3}) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      std::size_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range slice = slice_of(elements, ranks, rank);
        EXPECT_EQ(slice.begin, next);
        EXPECT_TRUE(slice.begin % kBlock == 0 || slice.size() == 0);
        next = slice.end;
      }
      EXPECT_EQ(next, elements);
    }
  }
}

TEST(AllGather, GivesEveryoneTheWholeVector) {
  const std::size_t elements = 7 * kBlock + 3;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    run_ranks(ranks, [&](Communicator& comm) {
      std::vector<float> whole(elements);
      const Range slice = slice_of(elements, ranks, comm.rank());
      for (std::size_t i = slice.begin; i < slice.end; ++i) {
        whole[i] = static_cast<float>(i);
      }
      ASSERT_TRUE(all_gather(comm, whole));
      for (std::size_t i = 0; i < elements; ++i) {
        ASSERT_EQ(whole[i], static_cast<float>(i));
      }
    });
  }
}

TEST(TreeSum, HasTheSameBitsHoweverTheValuesAreSpread) {
  std::vector<double> values(37);
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (double& value : values) {
    value = std::ldexp(normal(random), static_cast<int>(random() % 40));
  }
  const double expected = tree_sum(values);
  for (int ranks = 1; ranks <= 8; ++ranks) {
    run_ranks(ranks, [&](Communicator& comm) {
      const Range mine = slots_of(values.size(), ranks, comm.rank());
      EXPECT_EQ(tree_sum(comm, std::span(values).subspan(mine.begin, mine.size())).value(),
                expected);
    });
  }
}

}  // namespace
}  // namespace acb::train

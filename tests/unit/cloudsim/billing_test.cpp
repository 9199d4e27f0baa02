// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/billing.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

TEST(Billing, TheLongestOfUseMinimumAndDurationIsBilledInWholeSteps) {
  struct Row {
    std::int64_t granularity_s, minimum_min, duration_min, used_ms, billed_s;
  };
  for (const Row& row : {Row{1, 0, 0, 0, 0},
                         Row{1, 0, 0, 1, 1},
                         Row{1, 0, 0, 1000, 1},
                         Row{1, 0, 0, 1001, 2},
                         Row{1, 1, 0, 1000, 60},
                         Row{1, 1, 5, 1000, 300},
                         Row{1, 10, 5, 1000, 600},
                         Row{60, 0, 0, 60'001, 120},
                         Row{3600, 1, 0, 1, 3600},
                         Row{7, 1, 0, 0, 63}}) {
    const BillTerms terms{{}, row.granularity_s, row.minimum_min, row.duration_min};
    EXPECT_EQ(billed_seconds(terms, std::chrono::milliseconds(row.used_ms)), row.billed_s)
        << row.granularity_s << ' ' << row.minimum_min << ' ' << row.duration_min << ' '
        << row.used_ms;
  }
}

TEST(Billing, CostsAreExactToTheMillionth) {
  struct Row {
    const char* price;
    std::int64_t seconds;
    const char* cost;
  };
  for (const Row& row : {Row{"3.60", 1, "0.001"},
                         Row{"0.91", 60, "0.015167"},
                         Row{"0.0018", 1, "0.000001"},
                         Row{"0.001799", 1, "0.00"},
                         Row{"2", 3600, "2.00"},
                         Row{"1000000", 1'000'000'000, "277777777777.777778"}}) {
    const auto price = parse_money("price", row.price);
    ASSERT_TRUE(price);
    EXPECT_EQ(format_money(cost_of(*price, row.seconds)), row.cost) << row.price;
  }
}

TEST(Money, WhatIsNoDecimalOfSixPlacesIsRefused) {
  for (const char* text : {"", ".", "1.", ".5", "-1", "1e3", "1.0000001", "1,5", " 1", "1000001"}) {
    EXPECT_FALSE(parse_money("price", text)) << text;
  }
  EXPECT_EQ(format_money({0}), "0.00");
  EXPECT_EQ(format_money({2'500'000}), "2.50");
}

}  // namespace
}  // namespace acb::sim

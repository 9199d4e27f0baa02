// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/money.h"

#include <gtest/gtest.h>

namespace acb::cloud {
namespace {

TEST(ParseMoney, IsExactToTheMillionthAndRoundsAwayFromZeroBeyond) {
  struct Row {
    const char* text;
    std::int64_t micros;
  };
  for (const Row& row : {Row{"0", 0},
                         Row{"2.49", 2'490'000},
                         Row{"0.1", 100'000},
                         Row{"12", 12'000'000},
                         Row{"0.000001", 1},
                         Row{"0.0000010", 1},
                         Row{"0.0000011", 2},
                         Row{"-3.5", -3'500'000},
                         Row{"-0.0000011", -2},
                         Row{"999999999999.999999", 999'999'999'999'999'999}}) {
    const auto money = parse_money("price", row.text);
    ASSERT_TRUE(money) << row.text;
    EXPECT_EQ(money->micros(), row.micros) << row.text;
  }
}

TEST(ParseMoney, RefusesWhatIsNoDecimal) {
  for (const char* text :
       {"", "-", ".5", "5.", "1e3", "1,5", " 1", "1 ", "+1", "nan", "1.2.3", "1000000000000"}) {
    const auto money = parse_money("price", text);
    ASSERT_FALSE(money) << text;
    EXPECT_EQ(money.error().message,
              "price: '" + std::string(text) + "': must be a decimal such as 2.49");
  }
}

TEST(FormatMoney, ReadsBackTheSame) {
  struct Row {
    std::int64_t micros;
    const char* text;
  };
  for (const Row& row : {Row{0, "0.00"},
                         Row{2'490'000, "2.49"},
                         Row{2'400'000, "2.40"},
                         Row{1, "0.000001"},
                         Row{1'234'500, "1.2345"},
                         Row{-3'500'000, "-3.50"},
                         Row{INT64_MIN, "-9223372036854.775808"}}) {
    EXPECT_EQ(format_money(Money::from_micros(row.micros)), row.text);
  }
}

TEST(CostOf, RoundsUpToTheMillionth) {
  const Money price = Money::from_micros(2'490'000);
  EXPECT_EQ(cost_of(price, std::chrono::hours(2)).micros(), 4'980'000);
  EXPECT_EQ(cost_of(price, std::chrono::seconds(1)).micros(), 692);  // 691.67
  EXPECT_EQ(cost_of(price, std::chrono::seconds(0)).micros(), 0);
  // What no cloud means overflows nothing.
  EXPECT_GT(cost_of(price, std::chrono::seconds(INT64_MAX)).micros(), 1'000'000'000'000'000);
  EXPECT_GT(cost_of(Money::from_micros(INT64_MAX), std::chrono::hours(1'000'000)).micros(),
            1'000'000'000'000'000);
  // A price and a time whose plain product leaves 64 bits.
  EXPECT_EQ(cost_of(Money::from_micros(1'000'000'000'000), std::chrono::hours(100'000)).micros(),
            100'000'000'000'000'000);
}

}  // namespace
}  // namespace acb::cloud

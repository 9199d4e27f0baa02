// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace acb {
namespace {

TEST(ParseInteger, TakesTheWholeTextWithinTheRange) {
  EXPECT_EQ(parse_integer("n", "8", 1, 64).value(), 8);
  for (const char* text :
       {"", "x", "8x", " 8", "0", "65", "1e9", "2,3", "99999999999999999999", "+8"}) {
    const auto result = parse_integer("--nodes", text, 1, 64);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().message, "--nodes: '" + std::string(text) + "': must be 1 to 64");
  }
}

TEST(ParseNumber, RefusesWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(parse_number("lr", "6e-4", 0, 1).value(), 6e-4);
  for (const char* text : {"nan", "inf", "-1", "1.5.2"}) {
    EXPECT_FALSE(parse_number("lr", text, 0, 1)) << text;
  }
}

TEST(Time, ReadsWhatItWrites) {
  struct Row {
    const char* text;
    const char* canonical;
  };
  for (const Row& row : {Row{"2026-01-31T23:59:59Z", "2026-01-31T23:59:59.000Z"},
                         Row{"2026-01-31T23:59:59.123Z", "2026-01-31T23:59:59.123Z"},
                         Row{"2026-01-31T23:59:59.5+02:00", "2026-01-31T21:59:59.500Z"},
                         Row{"1969-12-31T23:59:59.250Z", "1969-12-31T23:59:59.250Z"}}) {
    const auto time = parse_time("at", row.text);
    ASSERT_TRUE(time) << time.error().message;
    EXPECT_EQ(format_time(*time), row.canonical);
  }
  EXPECT_FALSE(parse_time("at", "yesterday"));
  EXPECT_FALSE(parse_time("at", "2026-01-31T23:59:59"));
}

TEST(Split, KeepsEmptyPieces) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(trim(" a b\n"), "a b");
}

TEST(RandomHex, DiffersEachTime) {
  EXPECT_EQ(random_hex(16).size(), 32U);
  EXPECT_NE(random_hex(16), random_hex(16));
}

}  // namespace
}  // namespace acb

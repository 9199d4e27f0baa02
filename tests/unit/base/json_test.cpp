// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace acb {
namespace {

TEST(JsonOr, TakesNoNumberThatTheTypeDoesNotHold) {
  const auto json = parse_json("test", R"({"large":1e300,"small":-1e300,"most":18446744073709551615,
                                           "wide":4294967296,"minus":-1,"half":2.5,"seven":7})");
  ASSERT_TRUE(json);
  for (const char* key : {"large", "small", "most"}) {
    EXPECT_EQ(json_or<std::int64_t>(*json, key, 3), 3) << key;
    EXPECT_EQ(json_or<int>(*json, key, 3), 3) << key;
  }
  EXPECT_EQ(json_or<int>(*json, "wide", 3), 3);
  EXPECT_EQ(json_or<std::int64_t>(*json, "wide", 3), std::int64_t{1} << 32);
  EXPECT_EQ(json_or<std::uint64_t>(*json, "most", 3), UINT64_MAX);
  EXPECT_EQ(json_or<std::uint32_t>(*json, "minus", 3), 3U);
  EXPECT_EQ(json_or<int>(*json, "half", 3), 2);
  EXPECT_EQ(json_or<int>(*json, "seven", 3), 7);
  EXPECT_EQ(json_or<double>(*json, "large", 3), 1e300);
}

TEST(ParseJson, RefusesWhatANestWouldOverflowAStackWith) {
  const std::size_t deep = 1'000'000;
  const auto nested = parse_json("a body", std::string(deep, '[') + std::string(deep, ']'));
  ASSERT_FALSE(nested);
  EXPECT_EQ(nested.error().code, ErrorCode::corrupt);
  EXPECT_EQ(nested.error().message, "a body: nested deeper than 100");
  EXPECT_TRUE(parse_json("test", std::string(100, '[') + std::string(100, ']')));
  EXPECT_TRUE(
      parse_json("test", '"' + std::string(1000, '[') + "\\\"" + std::string(9, '{') + '"'));
  std::string wide = "[0";
  for (int i = 0; i < 1000; ++i) {
    wide += ",[{}]";
  }
  EXPECT_TRUE(parse_json("test", wide + "]"));
}

}  // namespace
}  // namespace acb

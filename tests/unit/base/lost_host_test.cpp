// SPDX-License-Identifier: Apache-2.0
#include "base/lost_host.h"

#include <gtest/gtest.h>

namespace acb {
namespace {

LostHost example() {
  return {2, "own-07", *parse_time("time", "2026-01-31T23:59:58Z")};
}

TEST(LostHost, StandsBehindTheUsersWordsAndReplacesAnOlderOne) {
  const std::string mark = "autocloud: start 2 lost own-07 2026-01-31T23:59:58Z";
  LostHost older = example();
  older.restart = 1;
  for (const std::string& words : {std::string(), std::string("my; run"), std::string("a | b")}) {
    const std::string expected = words.empty() ? mark : words + "; " + mark;
    EXPECT_EQ(with_lost_host(words, example()), expected);
    EXPECT_EQ(with_lost_host(with_lost_host(words, older), example()), expected);
    EXPECT_EQ(lost_host(expected), example());
  }
}

TEST(LostHost, IsNotSeenInOtherWords) {
  for (const char* comment : {"",
                              "autocloud: start ",
                              "autocloud: start 2 lost own-07",
                              "autocloud: start 2 lost  2026-01-31T23:59:58Z",
                              "autocloud: start 2 found own-07 2026-01-31T23:59:58Z",
                              "autocloud: start -1 lost own-07 2026-01-31T23:59:58Z",
                              "autocloud: start 2 lost own-07 yesterday",
                              "autocloud: start 2 lost own-07 2026-01-31T23:59:58Z or so"}) {
    EXPECT_FALSE(lost_host(comment)) << comment;
  }
}

}  // namespace
}  // namespace acb

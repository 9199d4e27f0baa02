// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/idempotency.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

using Verdict = IdempotencyStore::Verdict;
constexpr WallTime kNow{std::chrono::hours(1000)};

bool is_here(const std::string&) {
  return false;
}
bool is_gone(const std::string&) {
  return true;
}

TEST(IdempotencyStore, TheFirstReplyIsReplayedForThirtyDays) {
  IdempotencyStore store;
  ASSERT_EQ(store.claim("k", "body", kNow, is_here).verdict, Verdict::fresh);
  store.complete("k", "al-1", "reply", kNow);
  const auto replay = store.claim("k", "body", kNow + kKeyLife - std::chrono::hours(1), is_here);
  EXPECT_EQ(replay.verdict, Verdict::replay);
  EXPECT_EQ(replay.reply, "reply");
  EXPECT_EQ(store.claim("k", "body", kNow + kKeyLife, is_here).verdict, Verdict::fresh);
}

TEST(IdempotencyStore, ADuplicateInFlightIsToWaitWhateverItsBody) {
  IdempotencyStore store;
  ASSERT_EQ(store.claim("k", "body", kNow, is_here).verdict, Verdict::fresh);
  EXPECT_EQ(store.claim("k", "body", kNow, is_here).verdict, Verdict::in_flight);
  EXPECT_EQ(store.claim("k", "other", kNow, is_here).verdict, Verdict::in_flight);
  EXPECT_EQ(store.claim("l", "body", kNow, is_here).verdict, Verdict::fresh);
}

TEST(IdempotencyStore, AfterAnErrorTheKeyIsAsNew) {
  IdempotencyStore store;
  ASSERT_EQ(store.claim("k", "body", kNow, is_here).verdict, Verdict::fresh);
  store.abandon("k");
  EXPECT_EQ(store.claim("k", "other", kNow, is_here).verdict, Verdict::fresh);
}

TEST(IdempotencyStore, AMismatchAndAnExpiredKeySayWhatWasMade) {
  IdempotencyStore store;
  ASSERT_EQ(store.claim("k", "body", kNow, is_here).verdict, Verdict::fresh);
  store.complete("k", "al-1", "reply", kNow);
  const auto mismatch = store.claim("k", "other", kNow, is_here);
  EXPECT_EQ(mismatch.verdict, Verdict::mismatch);
  EXPECT_EQ(mismatch.made, "al-1");
  const auto expired = store.claim("k", "body", kNow, is_gone);
  EXPECT_EQ(expired.verdict, Verdict::expired);
  EXPECT_EQ(expired.made, "al-1");
}

}  // namespace
}  // namespace acb::sim

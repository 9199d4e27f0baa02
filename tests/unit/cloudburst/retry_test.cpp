// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/retry.h"

#include <gtest/gtest.h>

namespace acb::cloud {
namespace {

using std::chrono::seconds;
constexpr auto kThrottled = ErrorClass::throttled;

TEST(RetryDelay, GrowsFromTwoToThirtySecondsAndHonoursRetryAfter) {
  struct Row {
    const char* name;
    int attempt;
    ErrorClass cls;
    std::optional<seconds> retry_after;
    double jitter;
    int milliseconds;
  };
  for (const Row& row : {
           Row{"first", 1, kThrottled, {}, 0.5, 2000},
           Row{"second", 2, kThrottled, {}, 0.5, 4000},
           Row{"third", 3, kThrottled, {}, 0.5, 8000},
           Row{"fourth", 4, kThrottled, {}, 0.5, 16000},
           Row{"fifth", 5, kThrottled, {}, 0.5, 30000},
           Row{"hundredth", 100, kThrottled, {}, 0.5, 30000},
           Row{"no attempt yet", 0, kThrottled, {}, 0.5, 2000},
           Row{"never below 2 s", 1, kThrottled, {}, 0, 2000},
           Row{"most jitter", 1, kThrottled, {}, 1, 2500},
           Row{"never above 30 s", 9, kThrottled, {}, 1, 30000},
           Row{"least at the top", 9, kThrottled, {}, 0, 22500},
           Row{"jitter out of range", 2, kThrottled, {}, 7, 5000},
           Row{"told less than ours", 3, kThrottled, seconds(1), 0.5, 8000},
           Row{"told more than ours", 1, kThrottled, seconds(45), 0, 45000},
           Row{"told, with jitter", 1, kThrottled, seconds(45), 1, 46000},
           Row{"told nonsense", 1, kThrottled, seconds(-5), 0.5, 2000},
           Row{"told for ever", 1, kThrottled, seconds(99'999'999), 0, 3'600'000},
           Row{"ambiguous", 2, ErrorClass::ambiguous, {}, 0.5, 4000},
           Row{"no capacity", 2, ErrorClass::no_capacity, {}, 0.5, 4000},
           Row{"quota", 1, ErrorClass::quota, {}, 0.5, 30000},
           Row{"auth", 1, ErrorClass::auth, {}, 0.5, 30000},
           Row{"bad request", 1, ErrorClass::bad_request, {}, 0, 22500},
           Row{"conflict", 1, ErrorClass::conflict, {}, 0.5, 30000},
           Row{"gone", 1, ErrorClass::gone, {}, 0.5, 30000},
       }) {
    EXPECT_EQ(retry_delay(row.attempt, row.cls, row.retry_after, row.jitter).count(),
              row.milliseconds)
        << row.name;
  }
}

TEST(IsWorthRetrying, OnlyWhereTheSameCallCanSucceed) {
  EXPECT_TRUE(is_worth_retrying(ErrorClass::throttled));
  EXPECT_TRUE(is_worth_retrying(ErrorClass::ambiguous));
  for (const ErrorClass cls : {ErrorClass::no_capacity,
                               ErrorClass::quota,
                               ErrorClass::auth,
                               ErrorClass::bad_request,
                               ErrorClass::conflict,
                               ErrorClass::gone}) {
    EXPECT_FALSE(is_worth_retrying(cls)) << name_of(cls);
  }
}

}  // namespace
}  // namespace acb::cloud

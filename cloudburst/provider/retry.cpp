// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/retry.h"

#include <algorithm>

namespace acb::cloud {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kShortest = seconds(2);
constexpr milliseconds kLongest = seconds(30);
constexpr seconds kMostBelieved = std::chrono::hours(1);

bool mends_with_time(ErrorClass cls) {
  switch (cls) {
    case ErrorClass::throttled:
    case ErrorClass::ambiguous:
    case ErrorClass::no_capacity:
      return true;
    case ErrorClass::quota:
    case ErrorClass::auth:
    case ErrorClass::bad_request:
    case ErrorClass::conflict:
    case ErrorClass::gone:
      return false;
  }
  return false;
}

}  // namespace

bool is_worth_retrying(ErrorClass cls) {
  return cls == ErrorClass::throttled || cls == ErrorClass::ambiguous;
}

milliseconds retry_delay(int attempt,
                         ErrorClass cls,
                         std::optional<seconds> retry_after,
                         double jitter01) {
  const double jitter = std::clamp(jitter01, 0.0, 1.0);
  milliseconds base = kLongest;
  if (mends_with_time(cls)) {
    const int doublings = std::clamp(attempt - 1, 0, 4);
    base = std::min(kShortest * (1 << doublings), kLongest);
  }
  const auto scaled = milliseconds(
      static_cast<milliseconds::rep>(static_cast<double>(base.count()) * (0.75 + 0.5 * jitter)));
  milliseconds delay = std::clamp(scaled, kShortest, kLongest);
  if (retry_after) {
    const milliseconds floor = std::clamp(*retry_after, seconds(0), kMostBelieved);
    // Clients that were told the same moment must not all come at that moment.
    delay = std::max(delay, floor + milliseconds(static_cast<milliseconds::rep>(1000 * jitter)));
  }
  return delay;
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// Chance that repeats: every draw is a function of the seed, what it is for and a running number,
// so that calls racing each other do not change one another's luck. Pure.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace acb::sim {

/// 64 bits: FNV-1a of the purpose, mixed by splitmix64 (Steele, Lea, Flood 2014).
[[nodiscard]] std::uint64_t random_bits(std::uint64_t seed,
                                        std::string_view purpose,
                                        std::uint64_t ordinal);
/// In [0, 1).
[[nodiscard]] double random_unit(std::uint64_t seed,
                                 std::string_view purpose,
                                 std::uint64_t ordinal);
/// "<prefix>-<eight hexadecimal digits>", an identifier.
[[nodiscard]] std::string random_id(std::string_view prefix,
                                    std::uint64_t seed,
                                    std::uint64_t ordinal);

/// A time: "2" is two seconds, "1..3" anything between, "exp 30" exponential with that mean.
struct Distribution {
  enum class Shape { fixed, uniform, exponential };
  Shape shape = Shape::fixed;
  double low = 0;   ///< seconds: the value, the least, or the mean
  double high = 0;  ///< seconds: the most, of a uniform one

  /// The time at `unit` in [0, 1) of the distribution.
  [[nodiscard]] std::chrono::milliseconds at(double unit) const;
};
[[nodiscard]] Result<Distribution> parse_distribution(std::string_view what, std::string_view text);
[[nodiscard]] std::string format_distribution(const Distribution& distribution);

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, a counter-based random number generator: Salmon, Moraes, Dror, Shaw, "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011. The value at a counter needs no state, so any rank
// can compute any part of a stream. Pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace acb::train {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

[[nodiscard]] constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

/// Four independent uniform 32-bit numbers.
[[nodiscard]] constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  // Multipliers and Weyl constants from table 2 and section 4 of the paper.
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

}  // namespace acb::train

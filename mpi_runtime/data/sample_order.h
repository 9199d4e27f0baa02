// SPDX-License-Identifier: Apache-2.0
// Which window of the data is sample number 0, 1, 2, ... of a run: a function of the seed and the
// number alone, so that a position in the data is one integer and no rank needs to know of another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace acb::train {

/// Every epoch goes through all windows once, each in an order of its own: a Feistel network
/// (Luby and Rackoff 1988) over the least even number of bits that holds `windows`, walked until it
/// lands inside (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").
class SampleOrder {
 public:
  /// windows >= 1.
  SampleOrder(std::uint64_t seed, std::uint64_t windows);

  /// In [0, windows). Pure; thread-safe.
  [[nodiscard]] std::uint64_t window(std::uint64_t sample) const;

 private:
  [[nodiscard]] std::uint64_t shuffle(std::uint64_t value, std::uint64_t epoch) const;

  std::uint64_t seed_;
  std::uint64_t windows_;
  int half_bits_;
};

/// Windows of `context` inputs and their targets in `tokens` tokens; a window's last target is the
/// next one's first input.
[[nodiscard]] constexpr std::size_t window_count(std::size_t tokens, std::size_t context) {
  return tokens == 0 ? 0 : (tokens - 1) / context;
}

}  // namespace acb::train

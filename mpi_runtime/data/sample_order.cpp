// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/data/sample_order.h"

#include "mpi_runtime/ops/philox.h"

#include <bit>

namespace acb::train {

SampleOrder::SampleOrder(std::uint64_t seed, std::uint64_t windows)
    : seed_(seed),
      windows_(windows),
      half_bits_((static_cast<int>(std::bit_width(windows - 1)) + 1) / 2) {}

std::uint64_t SampleOrder::window(std::uint64_t sample) const {
  const std::uint64_t epoch = sample / windows_;
  std::uint64_t value = sample % windows_;
  // The network permutes fewer than 4 * windows_ values, so this takes 4 rounds on average at most.
  do {
    value = shuffle(value, epoch);
  } while (value >= windows_);
  return value;
}

std::uint64_t SampleOrder::shuffle(std::uint64_t value, std::uint64_t epoch) const {
  constexpr std::uint32_t kRounds = 6;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxCounter mixed = philox({static_cast<std::uint32_t>(right),
                                        round,
                                        static_cast<std::uint32_t>(epoch),
                                        // Apart from the counters of weights and dropout.
                                        0x80000000U | static_cast<std::uint32_t>(epoch >> 32)},
                                       philox_key(seed_));
    const std::uint64_t next = left ^ (mixed[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace acb::train

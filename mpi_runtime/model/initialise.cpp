// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/model/gpt2.h"
#include "mpi_runtime/ops/philox.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace acb::train {
namespace {

constexpr float kDeviation = 0.02F;

/// About standard normal: the sum of eight uniform 16-bit numbers, centred and scaled. No
/// logarithm or cosine, whose last bits differ between C libraries.
float near_normal(const PhiloxCounter& random) {
  std::int32_t sum = 0;
  for (const std::uint32_t word : random) {
    sum += static_cast<std::int32_t>(word & 0xFFFFU) + static_cast<std::int32_t>(word >> 16);
  }
  constexpr float kMean = 8.0F * 65535.0F / 2.0F;
  // A uniform number in [0, 65536) has variance 65536^2 / 12; eight of them 8 times that.
  constexpr float kInverseDeviation = 1.22474487139F / 65536.0F;
  return (static_cast<float>(sum) - kMean) * kInverseDeviation;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.ends_with(end);
}

}  // namespace

void initialise_weights(const ModelShape& shape, std::uint64_t seed, std::span<float> weights) {
  std::fill(weights.begin(), weights.end(), 0.0F);
  const float residual = 1.0F / std::sqrt(2.0F * static_cast<float>(shape.layers));
  std::uint32_t number = 0;
  for (const auto& tensor : gpt2_layout(shape)) {
    const auto values = weights.subspan(tensor.offset, tensor.count());
    if (tensor.shape.size() == 2) {
      const bool into_residual = ends_with(tensor.name, ".proj.weight");
      const float deviation = into_residual ? kDeviation * residual : kDeviation;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const PhiloxCounter counter{static_cast<std::uint32_t>(i),
                                    static_cast<std::uint32_t>(i >> 32),
                                    number,
                                    0xFFFFFFFFU};  // apart from every counter of dropout
        values[i] = deviation * near_normal(philox(counter, philox_key(seed)));
      }
    } else if (!ends_with(tensor.name, ".bias")) {
      std::fill(values.begin(), values.end(), 1.0F);
    }
    ++number;
  }
}

}  // namespace acb::train

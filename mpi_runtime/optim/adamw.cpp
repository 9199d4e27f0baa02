// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/optim/adamw.h"

#include "mpi_runtime/ops/kernels.h"
#include "mpi_runtime/optim/schedule.h"

#include <algorithm>
#include <array>

namespace acb::train {

std::vector<double> block_squares(std::span<const float> gradient) {
  std::vector<double> squares;
  for (std::size_t begin = 0; begin < gradient.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, gradient.size() - begin);
    squares.push_back(kernels::sum_of_squares(size, gradient.data() + begin));
  }
  return squares;
}

double clip_scale(double norm, double clip) {
  return clip > 0 && norm > clip ? clip / norm : 1.0;
}

AdamW::AdamW(const AdamwSettings& settings, std::span<const TensorSpec> layout, Range slice)
    : settings_(settings), first_(slice.size(), 0.0F), second_(slice.size(), 0.0F) {
  for (const auto& tensor : layout) {
    const std::size_t begin = std::max(tensor.offset, slice.begin);
    const std::size_t end = std::min(tensor.offset + tensor.count(), slice.end);
    if (begin < end) {
      pieces_.push_back({{begin - slice.begin, end - slice.begin}, decays(tensor)});
    }
  }
}

void AdamW::update(std::span<float> weights,
                   std::span<const float> gradient,
                   double scale,
                   double rate,
                   std::int64_t count) {
  kernels::AdamwStep step{
      .rate = static_cast<float>(rate),
      .gradient_scale = static_cast<float>(scale),
      .beta1 = static_cast<float>(settings_.beta1),
      .beta2 = static_cast<float>(settings_.beta2),
      .epsilon = static_cast<float>(settings_.epsilon),
      .first_correction = static_cast<float>(bias_correction(settings_.beta1, count)),
      .second_correction = static_cast<float>(bias_correction(settings_.beta2, count))};
  for (const auto& [range, decays_here] : pieces_) {
    step.decay = decays_here ? static_cast<float>(settings_.weight_decay) : 0.0F;
    kernels::adamw(range.size(),
                   step,
                   gradient.data() + range.begin,
                   std::array<float*, 3>{weights.data() + range.begin,
                                         first_.data() + range.begin,
                                         second_.data() + range.begin});
  }
}

}  // namespace acb::train

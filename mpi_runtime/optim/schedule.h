// SPDX-License-Identifier: Apache-2.0
// The learning rate and Adam's corrections as functions of the step. Pure; in IEEE-exact arithmetic
// without the C library's functions, so that ranks on different machines get the same bits.
#pragma once

#include <cstdint>

namespace acb::train {

/// Linear warm-up to `most`, then half a cosine down to `least` at `steps` (Loshchilov and Hutter
/// 2017, without restarts).
struct Schedule {
  double most = 0;
  double least = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 1;
};
/// The rate of step 1, 2, ... schedule.steps; `least` after it.
[[nodiscard]] double learning_rate(const Schedule& schedule, std::int64_t step);

/// 1 / (1 - beta^count), count >= 1.
[[nodiscard]] double bias_correction(double beta, std::int64_t count);

}  // namespace acb::train

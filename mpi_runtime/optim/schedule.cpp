// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/optim/schedule.h"

namespace acb::train {
namespace {

/// sin(x) for |x| <= pi/2 by its Taylor series; the first term left out is below 1e-14.
double sine(double x) {
  constexpr int kTerms = 10;
  double term = x;
  double sum = x;
  for (int n = 1; n < kTerms; ++n) {
    term *= -x * x / ((2.0 * n) * (2.0 * n + 1.0));
    sum += term;
  }
  return sum;
}

}  // namespace

double learning_rate(const Schedule& schedule, std::int64_t step) {
  if (step <= schedule.warmup_steps) {
    return schedule.most * static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  }
  if (step >= schedule.steps) {
    return schedule.least;
  }
  const double done = static_cast<double>(step - schedule.warmup_steps) /
                      static_cast<double>(schedule.steps - schedule.warmup_steps);
  constexpr double kPi = 3.14159265358979323846;
  const double cosine = -sine(kPi * (done - 0.5));
  return schedule.least + (schedule.most - schedule.least) * 0.5 * (1.0 + cosine);
}

double bias_correction(double beta, std::int64_t count) {
  double power = 1;
  double square = beta;
  for (std::int64_t left = count; left > 0; left /= 2) {
    if (left % 2 == 1) {
      power *= square;
    }
    square *= square;
  }
  return 1.0 / (1.0 - power);
}

}  // namespace acb::train

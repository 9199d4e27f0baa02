// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

namespace acb::train {
namespace {

const std::vector<TensorSpec> kLayout{{"matrix", {40, 64}, 0}, {"vector", {40}, 3 * kBlock}};
constexpr std::size_t kSize = 4 * kBlock;

std::vector<float> wave(std::size_t count, float phase) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::sin(static_cast<float>(i) + phase);
  }
  return values;
}

TEST(AdamW, SlicesUpdateToTheSameBitsAsTheWhole) {
  const auto gradient = wave(kSize, 0.5F);
  auto whole = wave(kSize, 0.1F);
  auto sliced = whole;
  AdamW optimizer({}, kLayout, {0, kSize});
  optimizer.update(whole, gradient, 0.7, 0.01, 1);
  for (std::size_t begin = 0; begin < kSize; begin += kBlock) {
    AdamW part({}, kLayout, {begin, begin + kBlock});
    part.update(std::span(sliced).subspan(begin, kBlock),
                std::span(gradient).subspan(begin, kBlock),
                0.7,
                0.01,
                1);
  }
  EXPECT_EQ(whole, sliced);
}

TEST(AdamW, OnlyMatricesDecayAndGapsAreLeftAlone) {
  std::vector<float> weights(kSize, 1.0F);
  const std::vector<float> gradient(kSize, 0.0F);
  AdamW optimizer({.weight_decay = 0.5}, kLayout, {0, kSize});
  optimizer.update(weights, gradient, 1, 0.1, 1);
  EXPECT_FLOAT_EQ(weights[0], 0.95F);
  EXPECT_FLOAT_EQ(weights[40 * 64 - 1], 0.95F);
  EXPECT_EQ(weights[40 * 64], 1.0F);  // the gap
  EXPECT_EQ(weights[3 * kBlock], 1.0F);
}

TEST(ClipScale, BringsTheNormDownToTheLimit) {
  const auto gradient = wave(kSize, 0.5F);
  double square = 0;
  for (const double block : block_squares(gradient)) {
    square += block;
  }
  const double norm = std::sqrt(square);
  const double scale = clip_scale(norm, 1.0);
  double clipped = 0;
  for (const float value : gradient) {
    clipped += std::pow(scale * static_cast<double>(value), 2);
  }
  EXPECT_NEAR(std::sqrt(clipped), 1.0, 1e-6);
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_scale(100, 0), 1.0);
}

}  // namespace
}  // namespace acb::train

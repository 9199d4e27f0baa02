// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/ops/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace acb::train::kernels {
namespace {

using testing::FloatNear;
using testing::Pointwise;

std::vector<float> wave(std::size_t count, float scale = 1.0F) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = scale * std::sin(1.7F * static_cast<float>(i) + 0.3F);
  }
  return values;
}

TEST(Kernels, RoundingToBf16IsToNearestEvenAndKeepsNotANumber) {
  struct Row {
    std::uint32_t in;
    std::uint16_t out;
  };
  const std::vector<Row> rows{{0x3F800000, 0x3F80},   // 1
                              {0x3F808000, 0x3F80},   // half way, to even below
                              {0x3F818000, 0x3F82},   // half way, to even above
                              {0x3F808001, 0x3F81},   // just over
                              {0x7F7FFFFF, 0x7F80},   // overflows to infinity
                              {0xFF800000, 0xFF80},   // minus infinity
                              {0x7F800001, 0x7FC0}};  // a NaN whose upper half is that of infinity
  for (const auto& row : rows) {
    const auto in = std::bit_cast<float>(row.in);
    std::uint16_t out = 0;
    to_bf16(1, &in, &out);
    EXPECT_EQ(out, row.out) << std::hex << row.in;
  }
}

TEST(Kernels, SoftmaxOverWhatIsSeenSumsToOneAndHidesTheRest) {
  for (const std::size_t seen : {1U, 5U, 16U, 37U}) {
    auto scores = wave(40, 30.0F);
    std::vector<double> wanted(40, 0.0);
    double sum = 0;
    for (std::size_t i = 0; i < seen; ++i) {
      wanted[i] = std::exp(0.5 * static_cast<double>(scores[i]));
      sum += wanted[i];
    }
    softmax_row(seen, 40, 0.5F, scores.data());
    for (std::size_t i = 0; i < 40; ++i) {
      EXPECT_NEAR(scores[i], wanted[i] / sum, 1e-6) << i << " of " << seen;
    }
  }
}

TEST(Kernels, CrossEntropyIsTheLossAndItsGradient) {
  auto logits = wave(33, 4.0F);
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit));
  }
  const double wanted = std::log(sum) - static_cast<double>(logits[7]);
  const auto before = logits;
  EXPECT_NEAR(cross_entropy_row(33, 7, 0.25F, logits.data()), wanted, 1e-5);
  for (std::size_t i = 0; i < 33; ++i) {
    const double probability = std::exp(static_cast<double>(before[i])) / sum;
    EXPECT_NEAR(logits[i], 0.25 * (probability - (i == 7 ? 1.0 : 0.0)), 1e-7) << i;
  }
}

TEST(Kernels, ANonFiniteLogitMakesTheLossNonFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t place : {0U, 11U, 32U}) {
      auto logits = wave(33);
      logits[place] = bad;
      EXPECT_FALSE(std::isfinite(cross_entropy_row(33, 7, 1.0F, logits.data()))) << place;
    }
  }
}

TEST(Kernels, GeluMatchesItsFormulaAndSlope) {
  const std::vector<float> in{-20, -3, -1, -0.1F, 0, 0.1F, 1, 3, 20};
  const auto formula = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  std::vector<float> out(in.size());
  gelu(in.size(), in.data(), out.data());
  std::vector<float> slope(in.size(), 1.0F);
  gelu_grad(in.size(), in.data(), slope.data(), slope.data());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double x = in[i];
    EXPECT_NEAR(out[i], formula(x), 1e-6) << x;
    EXPECT_NEAR(slope[i], (formula(x + 1e-5) - formula(x - 1e-5)) / 2e-5, 1e-5) << x;
  }
}

TEST(Kernels, LayernormNormalises) {
  const auto in = wave(100, 5.0F);
  const std::vector<float> gain(100, 2.0F);
  const std::vector<float> bias(100, 1.0F);
  std::vector<float> out(100);
  std::array<float, 2> kept{};
  const std::array<const float*, 2> affine{gain.data(), bias.data()};
  layernorm_row(100, in.data(), affine, out.data(), kept);
  double mean = 0;
  double square = 0;
  for (const float value : out) {
    mean += value / 100.0;
    square += (value - 1.0) * (value - 1.0) / 100.0;
  }
  EXPECT_NEAR(mean, 1.0, 1e-5);
  EXPECT_NEAR(square, 4.0, 1e-4);
}

TEST(Kernels, DropoutIsTheSameWhereverAStretchIsCutAndDropsAtItsRate) {
  const DropoutKey key{.seed = 7, .step = 3, .slot = 5, .micro_batch = 1, .layer = 2, .site = 1};
  std::vector<float> whole(10000, 1.0F);
  dropout(0, whole.size(), 0.25F, key, whole.data());
  std::vector<float> parts(10000, 1.0F);
  dropout(0, 4000, 0.25F, key, parts.data());
  dropout(4000, 6000, 0.25F, key, parts.data() + 4000);
  EXPECT_EQ(whole, parts);
  const auto dropped = std::count(whole.begin(), whole.end(), 0.0F);
  EXPECT_NEAR(static_cast<double>(dropped), 2500, 200);  // 4.6 deviations
  EXPECT_EQ(std::count(whole.begin(), whole.end(), 1.0F / 0.75F), 10000 - dropped);
}

TEST(Kernels, EveryPartOfADropoutKeyMatters) {
  const DropoutKey base{.seed = 7, .step = 3, .slot = 5, .micro_batch = 1, .layer = 2, .site = 1};
  std::vector<DropoutKey> keys(7, base);
  keys[1].seed += std::uint64_t{1} << 40;
  keys[2].step += std::uint64_t{1} << 40;
  keys[3].slot += 1;
  keys[4].micro_batch += 1;
  keys[5].layer += 1;
  keys[6].site += 1;
  std::vector<std::vector<float>> masks;
  for (const auto& key : keys) {
    std::vector<float> mask(256, 1.0F);
    dropout(0, mask.size(), 0.5F, key, mask.data());
    for (const auto& other : masks) {
      EXPECT_NE(mask, other) << masks.size();
    }
    masks.push_back(mask);
  }
}

// Against Loshchilov and Hutter's algorithm 2 in double precision.
TEST(Kernels, AdamwFollowsItsAlgorithm) {
  std::vector<float> weight{1.0F, -0.5F};
  std::vector<float> first(2, 0.0F);
  std::vector<float> second(2, 0.0F);
  std::vector<double> w{1.0, -0.5};
  std::vector<double> m(2, 0.0);
  std::vector<double> v(2, 0.0);
  for (int t = 1; t <= 10; ++t) {
    const std::vector<float> gradient{0.3F * static_cast<float>(t), -1.0F};
    const double correct1 = 1 / (1 - std::pow(0.9, t));
    const double correct2 = 1 / (1 - std::pow(0.95, t));
    adamw(2,
          {.rate = 0.01F,
           .gradient_scale = 0.5F,
           .decay = 0.1F,
           .first_correction = static_cast<float>(correct1),
           .second_correction = static_cast<float>(correct2)},
          gradient.data(),
          std::array<float*, 3>{weight.data(), first.data(), second.data()});
    for (std::size_t i = 0; i < 2; ++i) {
      const double g = 0.5 * gradient[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      w[i] -= 0.01 * (m[i] * correct1 / (std::sqrt(v[i] * correct2) + 1e-8) + 0.1 * w[i]);
    }
  }
  EXPECT_NEAR(weight[0], w[0], 1e-5);
  EXPECT_NEAR(weight[1], w[1], 1e-5);
}

}  // namespace
}  // namespace acb::train::kernels

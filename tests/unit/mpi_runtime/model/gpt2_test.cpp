// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/model/gpt2.h"

#include "mpi_runtime/ops/cpu_ops.h"
#include "mpi_runtime/ops/kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

namespace acb::train {
namespace {

constexpr ModelShape kSmall{.layers = 2, .heads = 2, .width = 16, .context = 9, .vocab = 23};
constexpr int kBatch = 3;

std::vector<std::int32_t> some_tokens(const ModelShape& shape, int batch, std::int32_t salt) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * (shape.context + 1)));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = (static_cast<std::int32_t>(i * i) + salt) % shape.vocab;
  }
  return tokens;
}

struct Rig {
  explicit Rig(int threads = 1, float dropout = 0, Precision precision = Precision::fp32)
      : ops(std::move(*make_cpu_ops(threads, precision))),
        model(kSmall, kBatch, dropout, precision, *ops),
        size(flat_size(model.layout())),
        weights(ops->allocate(size)),
        gradient(ops->allocate(size)) {
    initialise_weights(kSmall, 11, {weights.get(), size});
    // Away from the flat start, where the gradients of many tensors are next to nothing.
    for (const auto& tensor : model.layout()) {
      for (std::size_t i = 0; i < tensor.count(); ++i) {
        weights[tensor.offset + i] += 0.2F * std::sin(static_cast<float>(i) * 1.3F + 0.7F);
      }
    }
    model.set_weights(weights.get());
  }

  std::unique_ptr<Ops> ops;
  Gpt2 model;
  std::size_t size;
  Buffer weights;
  Buffer gradient;
};

// Central differences, along the gradient of each tensor: the loss is a sum of thousands of fp32
// terms, so a single element's difference would drown in rounding, a whole direction does not.
class Gpt2Gradients : public testing::TestWithParam<float> {};
INSTANTIATE_TEST_SUITE_P(Dropout, Gpt2Gradients, testing::Values(0.0F, 0.3F));

TEST_P(Gpt2Gradients, MatchFiniteDifferencesInEveryTensor) {
  const float dropout = GetParam();
  Rig rig(1, dropout);
  const auto tokens = some_tokens(kSmall, kBatch, 5);
  const Gpt2::MicroBatch input{.tokens = tokens, .key = {.seed = 3, .step = 1}};
  (void)rig.model.add_gradient(input, rig.gradient.get());
  Buffer ignored = rig.ops->allocate(rig.size);
  const std::vector<float> start(rig.weights.get(), rig.weights.get() + rig.size);
  for (const auto& tensor : rig.model.layout()) {
    const float* g = rig.gradient.get() + tensor.offset;
    double square = 0;
    for (std::size_t i = 0; i < tensor.count(); ++i) {
      square += static_cast<double>(g[i]) * static_cast<double>(g[i]);
    }
    ASSERT_GT(square, 1e-4) << tensor.name;
    const double length = std::sqrt(square);
    const double reach = 8e-3;
    const auto loss_at = [&](double distance) {
      for (std::size_t i = 0; i < tensor.count(); ++i) {
        rig.weights[tensor.offset + i] =
            start[tensor.offset + i] + static_cast<float>(distance * g[i] / length);
      }
      rig.model.set_weights(rig.weights.get());
      return rig.model.add_gradient(input, ignored.get());
    };
    const auto slope_over = [&](double distance) {
      return (loss_at(distance) - loss_at(-distance)) / (2 * distance);
    };
    // Two distances: Richardson's extrapolation takes out the cubic term.
    const double slope = (4 * slope_over(reach / 2) - slope_over(reach)) / 3;
    EXPECT_NEAR(slope / length, 1.0, 2e-3) << tensor.name << " with dropout " << dropout;
    std::copy(start.begin(), start.end(), rig.weights.get());
  }
}

TEST(Gpt2, GradientsOfBf16AreNearThoseOfFp32) {
  if (!make_cpu_ops(1, Precision::bf16)) {
    return;  // a processor without AVX-512 refuses it, which is another test's matter
  }
  Rig exact;
  Rig rounded(1, 0, Precision::bf16);
  const auto tokens = some_tokens(kSmall, kBatch, 5);
  const double loss = exact.model.add_gradient({.tokens = tokens}, exact.gradient.get());
  const double near = rounded.model.add_gradient({.tokens = tokens}, rounded.gradient.get());
  EXPECT_NEAR(near / loss, 1.0, 0.01);
  EXPECT_NE(near, loss);
  double dot = 0;
  double square1 = 0;
  double square2 = 0;
  for (std::size_t i = 0; i < exact.size; ++i) {
    dot += static_cast<double>(exact.gradient[i]) * static_cast<double>(rounded.gradient[i]);
    square1 += static_cast<double>(exact.gradient[i]) * static_cast<double>(exact.gradient[i]);
    square2 += static_cast<double>(rounded.gradient[i]) * static_cast<double>(rounded.gradient[i]);
  }
  EXPECT_GT(dot / std::sqrt(square1 * square2), 0.999);
}

TEST(Gpt2, BitsDoNotDependOnThreads) {
  const auto tokens = some_tokens(kSmall, kBatch, 5);
  std::vector<float> wanted;
  for (const int threads : {1, 2, 4}) {
    Rig rig(threads, 0.1F);
    (void)rig.model.add_gradient({.tokens = tokens}, rig.gradient.get());
    const std::vector<float> got(rig.gradient.get(), rig.gradient.get() + rig.size);
    if (wanted.empty()) {
      wanted = got;
    }
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)), 0) << threads;
  }
}

TEST(Gpt2, LossFallsOnATinyCorpus) {
  Rig rig;
  initialise_weights(kSmall, 11, {rig.weights.get(), rig.size});
  const auto tokens = some_tokens(kSmall, kBatch, 5);
  const double targets = kBatch * kSmall.context;
  Buffer first = rig.ops->allocate(rig.size);
  Buffer second = rig.ops->allocate(rig.size);
  rig.model.set_weights(rig.weights.get());
  const double before = rig.model.loss(tokens) / targets;
  EXPECT_NEAR(before, std::log(23.0), 0.1);  // it starts out knowing nothing
  for (int step = 1; step <= 60; ++step) {
    rig.ops->zero(rig.size, rig.gradient.get());
    (void)rig.model.add_gradient({.tokens = tokens, .scale = static_cast<float>(1 / targets)},
                                 rig.gradient.get());
    kernels::adamw(rig.size,
                   {.rate = 0.01F,
                    .first_correction = static_cast<float>(1 / (1 - std::pow(0.9, step))),
                    .second_correction = static_cast<float>(1 / (1 - std::pow(0.95, step)))},
                   rig.gradient.get(),
                   std::array<float*, 3>{rig.weights.get(), first.get(), second.get()});
    rig.model.set_weights(rig.weights.get());
  }
  EXPECT_LT(rig.model.loss(tokens) / targets, before / 3);
}

TEST(Gpt2, GapsBetweenTensorsStayZero) {
  Rig rig;
  const auto tokens = some_tokens(kSmall, kBatch, 5);
  (void)rig.model.add_gradient({.tokens = tokens}, rig.gradient.get());
  std::vector<bool> used(rig.size, false);
  for (const auto& tensor : rig.model.layout()) {
    std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(tensor.offset), tensor.count(), true);
  }
  for (std::size_t i = 0; i < rig.size; ++i) {
    if (!used[i]) {
      ASSERT_EQ(rig.gradient[i], 0.0F) << i;
      ASSERT_EQ(rig.weights[i], 0.0F) << i;
    }
  }
}

TEST(InitialiseWeights, IsAFunctionOfTheSeed) {
  const std::size_t size = flat_size(gpt2_layout(kSmall));
  std::vector<float> one(size);
  std::vector<float> same(size);
  std::vector<float> other(size);
  initialise_weights(kSmall, 1, one);
  initialise_weights(kSmall, 1, same);
  initialise_weights(kSmall, 2, other);
  EXPECT_EQ(one, same);
  EXPECT_NE(one, other);
}

TEST(InitialiseWeights, HasThePublishedDeviation) {
  const ModelShape shape{.layers = 8, .heads = 2, .width = 64, .context = 8, .vocab = 256};
  std::vector<float> weights(flat_size(gpt2_layout(shape)));
  initialise_weights(shape, 1, weights);
  for (const auto& tensor : gpt2_layout(shape)) {
    if (tensor.name != "h.0.mlp.fc.weight" && tensor.name != "h.0.mlp.proj.weight") {
      continue;
    }
    double square = 0;
    for (std::size_t i = 0; i < tensor.count(); ++i) {
      const double value = weights[tensor.offset + i];
      square += value * value / static_cast<double>(tensor.count());
    }
    EXPECT_NEAR(std::sqrt(square), tensor.name == "h.0.mlp.fc.weight" ? 0.02 : 0.005, 2e-4);
  }
}

}  // namespace
}  // namespace acb::train

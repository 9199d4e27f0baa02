// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/config/train_config.h"
#include "mpi_runtime/ops/cpu_ops.h"
#include "mpi_runtime/ops/isa.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace acb::train {
namespace {

std::vector<float> noise(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (auto& value : values) {
    seed = seed * 1664525U + 1013904223U;  // Numerical Recipes' quick generator
    value = static_cast<float>(seed >> 8) / 8388608.0F - 1.0F;
  }
  return values;
}

std::unique_ptr<Ops> cpu(int threads, Precision precision = Precision::fp32) {
  auto ops = make_cpu_ops(threads, precision);
  EXPECT_TRUE(ops);
  return std::move(*ops);
}

struct Outcome {
  std::vector<float> out;
  std::vector<float> in_grad;
  std::vector<float> weight_grad;
  std::vector<float> bias_grad;
  bool operator==(const Outcome&) const = default;
};

Outcome run_linear(Ops& ops, const LinearShape& s) {
  const auto in = noise(static_cast<std::size_t>(s.rows * s.inputs), 1);
  const auto weight = noise(static_cast<std::size_t>(s.outputs * s.inputs), 2);
  const auto bias = noise(static_cast<std::size_t>(s.outputs), 3);
  const auto out_grad = noise(static_cast<std::size_t>(s.rows * s.outputs), 4);
  std::vector<std::uint16_t> rounded(weight.size());
  ops.to_bf16(weight.size(), weight.data(), rounded.data());
  const Weight both{weight.data(), rounded.data()};
  Outcome outcome{std::vector<float>(out_grad.size()),
                  std::vector<float>(in.size()),
                  std::vector<float>(weight.size(), 0.5F),
                  std::vector<float>(bias.size(), 0.5F)};
  ops.linear(s, in.data(), both, bias.data(), outcome.out.data());
  ops.linear_input_grad(s, out_grad.data(), both, outcome.in_grad.data());
  ops.linear_weight_grad(
      s, in.data(), out_grad.data(), outcome.weight_grad.data(), outcome.bias_grad.data());
  EXPECT_TRUE(ops.status()) << ops.status().error().message;
  return outcome;
}

TEST(Products, LinearLayersMatchTheirDefinition) {
  const LinearShape s{.rows = 37, .inputs = 19, .outputs = 300};
  const auto in = noise(37 * 19, 1);
  const auto weight = noise(300 * 19, 2);
  const auto bias = noise(300, 3);
  const auto out_grad = noise(37 * 300, 4);
  const auto got = run_linear(*cpu(2), s);
  const auto at = [](const std::vector<float>& m, std::size_t width, std::size_t r, std::size_t c) {
    return static_cast<double>(m[r * width + c]);
  };
  for (std::size_t row = 0; row < 37; ++row) {
    for (std::size_t o = 0; o < 300; ++o) {
      double sum = bias[o];
      for (std::size_t i = 0; i < 19; ++i) {
        sum += at(in, 19, row, i) * at(weight, 19, o, i);
      }
      ASSERT_NEAR(at(got.out, 300, row, o), sum, 1e-5);
    }
    for (std::size_t i = 0; i < 19; ++i) {
      double sum = 0;
      for (std::size_t o = 0; o < 300; ++o) {
        sum += at(out_grad, 300, row, o) * at(weight, 19, o, i);
      }
      ASSERT_NEAR(at(got.in_grad, 19, row, i), sum, 1e-4);
    }
  }
  for (std::size_t o = 0; o < 300; ++o) {
    double bias_sum = 0.5;
    for (std::size_t row = 0; row < 37; ++row) {
      bias_sum += at(out_grad, 300, row, o);
    }
    ASSERT_NEAR(got.bias_grad[o], bias_sum, 1e-5);
    for (std::size_t i = 0; i < 19; ++i) {
      double sum = 0.5;
      for (std::size_t row = 0; row < 37; ++row) {
        sum += at(out_grad, 300, row, o) * at(in, 19, row, i);
      }
      ASSERT_NEAR(at(got.weight_grad, 19, o, i), sum, 1e-5);
    }
  }
}

struct NamedShape {
  const char* name;
  LinearShape shape;
};
/// The quickstart's own settings.
TrainConfig quickstart() {
  TrainConfig config;
  const auto raw = read_toml(ACB_SOURCE_DIR "/contrib/quickstart/train.toml");
  EXPECT_TRUE(raw && apply_settings(config, train_settings(), *raw, "quickstart"));
  return config;
}

// Every linear layer of the quickstart's model, and some that do not divide into tiles evenly.
std::vector<NamedShape> shapes() {
  const TrainConfig config = quickstart();
  const std::int64_t rows = std::int64_t{config.micro_batch} * config.context;
  const std::int64_t width = config.width;
  constexpr std::int64_t kBytes = 256;  // text: a byte is a token
  return {{"qkv", {rows, width, 3 * width}},
          {"attention_projection", {rows, width, width}},
          {"mlp_up", {rows, width, 4 * width}},
          {"mlp_down", {rows, 4 * width, width}},
          {"head", {rows, width, kBytes}},
          {"wide_head", {64, 96, 1031}},
          {"uneven", {331, 77, 517}}};
}

class ProductBits : public testing::TestWithParam<NamedShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, ProductBits, testing::ValuesIn(shapes()), [](const auto& row) {
  return std::string(row.param.name);
});

TEST_P(ProductBits, AreTheSameWithOneTwoAndFourThreads) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    if (precision == Precision::bf16 && detect_isa() < Isa::avx512) {
      continue;
    }
    const Outcome wanted = run_linear(*cpu(1, precision), GetParam().shape);
    EXPECT_TRUE(run_linear(*cpu(2, precision), GetParam().shape) == wanted);
    EXPECT_TRUE(run_linear(*cpu(4, precision), GetParam().shape) == wanted);
  }
}

std::vector<float> run_attention(Ops& ops, const AttentionShape& s) {
  const auto width = static_cast<std::size_t>(s.heads * s.head_width);
  const auto rows = static_cast<std::size_t>(s.batch * s.length);
  const auto qkv = noise(rows * width * 3, 5);
  const auto out_grad = noise(rows * width, 6);
  std::vector<float> probabilities(
      static_cast<std::size_t>(s.batch * s.heads * s.length * s.length));
  std::vector<float> result(rows * width * 4);
  ops.attention(s, qkv.data(), probabilities.data(), result.data());
  ops.attention_grad(
      s, qkv.data(), probabilities.data(), out_grad.data(), result.data() + rows * width);
  EXPECT_TRUE(ops.status()) << ops.status().error().message;
  return result;
}

TEST(Attention, GivesTheSameBitsWithOneTwoAndFourThreads) {
  const TrainConfig config = quickstart();
  for (const AttentionShape& shape :
       {AttentionShape{
            config.micro_batch, config.context, config.heads, config.width / config.heads},
        AttentionShape{1, 150, 3, 16}}) {
    const auto wanted = run_attention(*cpu(1), shape);
    EXPECT_EQ(run_attention(*cpu(2), shape), wanted);
    EXPECT_EQ(run_attention(*cpu(4), shape), wanted);
  }
}

TEST(Attention, SeesOnlyWhatComesBefore) {
  const AttentionShape s{1, 70, 2, 8};
  auto ops = cpu(1);
  auto qkv = noise(70 * 48, 5);
  std::vector<float> probabilities(2 * 70 * 70);
  std::vector<float> before(70 * 16);
  std::vector<float> after(70 * 16);
  ops->attention(s, qkv.data(), probabilities.data(), before.data());
  constexpr std::size_t kChanged = 66;
  std::fill(qkv.begin() + kChanged * 48, qkv.end(), 3.0F);
  ops->attention(s, qkv.data(), probabilities.data(), after.data());
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + kChanged * 16, after.begin()));
  EXPECT_NE(before, after);
}

}  // namespace
}  // namespace acb::train

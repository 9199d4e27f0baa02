// SPDX-License-Identifier: Apache-2.0
// The CPU loops beside the matrix products. Each works on a stretch that one thread computes alone.
// They are compiled for several instruction sets, all with the same bits: sums run over sixteen
// fixed lanes, a product and a sum are never fused, and exp is our own polynomial. Pure functions.
#pragma once

#include "mpi_runtime/ops/ops.h"

#include <cstddef>
#include <cstdint>

namespace acb::train::kernels {

/// Columns [begin, end) of matrices that are `width` wide and `rows` high.
struct Columns {
  std::size_t rows = 0;
  std::size_t width = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

void to_bf16(std::size_t count, const float* in, std::uint16_t* out);
void add(std::size_t count, const float* from, float* to);
void gelu(std::size_t count, const float* in, float* out);
void gelu_grad(std::size_t count, const float* in, const float* out_grad, float* in_grad);

/// One row of layernorm.
void layernorm_row(std::size_t width,
                   const float* in,
                   std::span<const float* const, 2> gain_and_bias,
                   float* out,
                   std::span<float, 2> mean_and_inverse_deviation);
/// Adds to one row of the input's gradient. `normal` is scratch of `width` floats.
void layernorm_grad_row(std::size_t width,
                        const float* in,
                        const float* gain,
                        std::span<const float, 2> mean_and_inverse_deviation,
                        const float* out_grad,
                        float* in_grad);
/// Adds to the gradients of gain and bias.
void layernorm_grad_columns(const Columns& columns,
                            const float* in,
                            NormStatistics statistics,
                            const float* out_grad,
                            std::span<float* const, 2> gain_and_bias_grad);
/// Adds the sums over rows to `sums`.
void column_sums(const Columns& columns, const float* in, float* sums);

/// Row of scores to probabilities: softmax of scale * scores[0, seen), zeros up to `width`.
void softmax_row(std::size_t seen, std::size_t width, float scale, float* scores);
/// The gradient of softmax_row, from that of the probabilities, in place.
void softmax_grad_row(
    std::size_t seen, std::size_t width, float scale, const float* probabilities, float* grad);
/// Returns -log softmax(logits)[target]; the logits become scale * (softmax - onehot(target)).
[[nodiscard]] float cross_entropy_row(std::size_t vocab,
                                      std::size_t target,
                                      float scale,
                                      float* logits);

/// Dropout of elements [begin, begin + count) of the stretch that `key` names; begin is a multiple
/// of 4.
void dropout(
    std::size_t begin, std::size_t count, float rate, const DropoutKey& key, float* values);

/// The sum of squares, in sixteen fixed lanes, of at most kBlock elements.
[[nodiscard]] float sum_of_squares(std::size_t count, const float* values);

struct AdamwStep {
  float rate = 0;            ///< learning rate
  float gradient_scale = 1;  ///< from clipping
  float decay = 0;           ///< decoupled weight decay
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float first_correction = 1;   ///< 1 / (1 - beta1^t)
  float second_correction = 1;  ///< 1 / (1 - beta2^t)
};
/// One AdamW update (Loshchilov and Hutter 2019, algorithm 2) of `count` elements in place.
void adamw(std::size_t count,
           const AdamwStep& step,
           const float* gradient,
           std::span<float* const, 3> weight_and_moments);

}  // namespace acb::train::kernels

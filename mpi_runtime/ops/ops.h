// SPDX-License-Identifier: Apache-2.0
// The compute that model code is written over. Matrices are row-major and dense; all pointers are
// to memory from allocate() and do not overlap unless said. "Adds" means that the result is added
// to what is there, anything else is overwritten.
//
// An implementation keeps one promise: the bits of a result depend on the arguments and on the
// instruction set agreed with set_isa() (or the device model), never on the number of threads.
//
// One thread at a time may call an Ops.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace acb::train {

enum class Precision {
  fp32,
  bf16,  ///< products of linear layers read bf16 and add in fp32; all else stays fp32
};

/// Device memory of `count` floats, given back with its owner.
using Buffer = std::unique_ptr<float[], std::function<void(float*)>>;

/// A linear layer over `rows` vectors; its weight is {outputs, inputs}.
struct LinearShape {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

/// A weight in fp32 and, for Precision::bf16, its rounded copy (else null).
struct Weight {
  const float* fp32 = nullptr;
  const std::uint16_t* bf16 = nullptr;
};

struct NormShape {
  std::int64_t rows = 0;
  std::int64_t width = 0;
};
/// What layernorm() keeps for its gradient: one value per row.
struct NormStatistics {
  float* mean = nullptr;
  float* inverse_deviation = nullptr;
};

/// Causal self-attention over {batch, length, 3 * heads * head_width}: queries, keys, values.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t length = 0;
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
};

/// Names one stretch of random numbers: equal keys give equal masks wherever they are computed.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t slot = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t layer = 0;
  std::uint32_t site = 0;  ///< which of the layer's dropouts
};

class Ops {
 public:
  virtual ~Ops() = default;

  /// Zero-filled, aligned to 64 bytes.
  [[nodiscard]] virtual Buffer allocate(std::size_t count) = 0;
  /// The first failure since construction; after one, results mean nothing.
  [[nodiscard]] virtual Status status() const = 0;

  /// out{rows, outputs} = in{rows, inputs} * weight^T + bias (which may be null).
  virtual void linear(
      const LinearShape& shape, const float* in, Weight weight, const float* bias, float* out) = 0;
  /// in_grad = out_grad * weight.
  virtual void linear_input_grad(const LinearShape& shape,
                                 const float* out_grad,
                                 Weight weight,
                                 float* in_grad) = 0;
  /// Adds out_grad^T * in to weight_grad, and the column sums of out_grad to bias_grad (which may
  /// be null).
  virtual void linear_weight_grad(const LinearShape& shape,
                                  const float* in,
                                  const float* out_grad,
                                  float* weight_grad,
                                  float* bias_grad) = 0;
  /// The copy that a Weight wants, rounded to nearest even.
  virtual void to_bf16(std::size_t count, const float* in, std::uint16_t* out) = 0;

  /// Ba, Kiros and Hinton 2016, with epsilon 1e-5.
  virtual void layernorm(const NormShape& shape,
                         const float* in,
                         std::span<const float* const, 2> gain_and_bias,
                         float* out,
                         NormStatistics statistics) = 0;
  /// Adds to in_grad, and to the gradients of gain and bias.
  virtual void layernorm_grad(const NormShape& shape,
                              const float* in,
                              const float* gain,
                              NormStatistics statistics,
                              const float* out_grad,
                              std::span<float* const, 3> in_gain_and_bias_grad) = 0;

  /// The tanh form of Hendrycks and Gimpel 2016; the gradient may be written over out_grad.
  virtual void gelu(std::size_t count, const float* in, float* out) = 0;
  virtual void gelu_grad(std::size_t count,
                         const float* in,
                         const float* out_grad,
                         float* in_grad) = 0;

  /// `probabilities` is {batch, heads, length, length} and kept for the gradient.
  virtual void attention(const AttentionShape& shape,
                         const float* qkv,
                         float* probabilities,
                         float* out) = 0;
  virtual void attention_grad(const AttentionShape& shape,
                              const float* qkv,
                              const float* probabilities,
                              const float* out_grad,
                              float* qkv_grad) = 0;

  /// Row r of out = tokens_table[tokens[r]] + positions_table[r mod length]; shape.rows rows.
  virtual void embed(const NormShape& shape,
                     std::int64_t length,
                     std::span<const std::int32_t> tokens,
                     std::span<const float* const, 2> tables,
                     float* out) = 0;
  /// Adds to the gradients of the two tables.
  virtual void embed_grad(const NormShape& shape,
                          std::int64_t length,
                          std::span<const std::int32_t> tokens,
                          const float* out_grad,
                          std::span<float* const, 2> table_grads) = 0;

  /// Softmax cross-entropy of logits{rows, vocab}: losses[r] in nats, and the logits are replaced
  /// by the gradient of scale * (sum of losses).
  virtual void cross_entropy(std::int64_t vocab,
                             std::span<const std::int32_t> targets,
                             float scale,
                             float* logits,
                             std::span<float> losses) = 0;

  virtual void zero(std::size_t count, float* values) = 0;
  virtual void copy(std::size_t count, const float* from, float* to) = 0;
  /// Adds `from` to `to`.
  virtual void add(std::size_t count, const float* from, float* to) = 0;
  /// Zeroes each value with probability `rate`, scales the others by 1 / (1 - rate).
  virtual void dropout(std::size_t count, float rate, const DropoutKey& key, float* values) = 0;
};

}  // namespace acb::train

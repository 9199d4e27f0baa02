// SPDX-License-Identifier: Apache-2.0
// Forward and backward pass of a GPT-2 over Ops, one micro-batch at a time. Dropout, where asked
// for, is on the embeddings and on the two branches of each block, not on attention probabilities.
// One thread at a time.
#pragma once

#include "mpi_runtime/model/layout.h"
#include "mpi_runtime/ops/ops.h"

#include <memory>
#include <span>
#include <vector>

namespace acb::train {

/// Fills `weights` (flat_size elements; gaps get zeros): matrices about normal with deviation 0.02,
/// less by sqrt(2 * layers) for the projections into the residual stream; gains one, biases zero. A
/// function of shape and seed alone, in integer and IEEE-exact arithmetic.
void initialise_weights(const ModelShape& shape, std::uint64_t seed, std::span<float> weights);

class Gpt2 {
 public:
  /// `batch` sequences of shape.context tokens to a micro-batch; `ops` must outlive the model.
  Gpt2(const ModelShape& shape, int batch, float dropout, Precision precision, Ops& ops);
  ~Gpt2();
  Gpt2(const Gpt2&) = delete;
  Gpt2& operator=(const Gpt2&) = delete;

  [[nodiscard]] std::span<const TensorSpec> layout() const;

  /// Uses these weights (the flat vector, in memory of `ops`) from here on. Call it again after
  /// each change of theirs; they must outlive their use.
  void set_weights(const float* weights);

  /// Batch rows of context + 1 tokens each: every token but the last is an input, every one but
  /// the first a target.
  struct MicroBatch {
    std::span<const std::int32_t> tokens;
    float scale = 1;   ///< the gradient is that of scale * (sum of the losses)
    DropoutKey key{};  ///< its seed, step, slot and micro-batch
  };
  /// Adds the gradient to `gradient` (flat, memory of `ops`) and returns the sum of the losses of
  /// its batch * context targets, in nats, summed in order.
  [[nodiscard]] double add_gradient(const MicroBatch& input, float* gradient);
  /// The same sum without dropout and without a gradient.
  [[nodiscard]] double loss(std::span<const std::int32_t> tokens);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
// Where each named tensor lies in the one flat fp32 vector that holds a model's parameters (and, in
// the same layout, its gradients and optimizer state). Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace acb::train {

/// Elements of a block. Every tensor starts at a multiple of it and the gap after a tensor holds
/// zeros, so a block never spans two tensors. Slices that ranks own begin at block boundaries, and
/// norms are summed per block: neither depends on how many ranks there are.
inline constexpr std::size_t kBlock = 1024;

struct TensorSpec {
  std::string name;                 ///< logical, as in "h.0.attn.qkv.weight"
  std::vector<std::int64_t> shape;  ///< row-major; a matrix is {outputs, inputs}
  std::size_t offset = 0;           ///< of its first element in the flat vector

  [[nodiscard]] std::size_t count() const;  ///< elements, the gap after it not included
};

/// A decoder of the GPT-2 family: pre-norm blocks, learned positions, output head tied to the token
/// embedding (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners").
struct ModelShape {
  int layers = 2;
  int heads = 4;
  int width = 128;   ///< a multiple of heads; the feed-forward part is four times as wide
  int context = 64;  ///< positions per sequence
  int vocab = 256;   ///< tokens
};

/// The tensors in ascending order of offset: wte, wpe, per layer ln1, attn.qkv, attn.proj, ln2,
/// mlp.fc, mlp.proj, and lnf.
[[nodiscard]] std::vector<TensorSpec> gpt2_layout(const ModelShape& shape);

/// Elements of the flat vector, gaps included: a multiple of kBlock.
[[nodiscard]] std::size_t flat_size(std::span<const TensorSpec> layout);

/// Whether weight decay applies: to matrices, not to biases or norms.
[[nodiscard]] bool decays(const TensorSpec& tensor);

}  // namespace acb::train

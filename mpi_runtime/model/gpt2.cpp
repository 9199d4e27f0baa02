// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/model/gpt2.h"

#include <array>

namespace acb::train {
namespace {

/// Offsets in the flat vector.
struct LinearAt {
  std::size_t weight = 0;
  std::size_t bias = 0;
};
struct NormAt {
  std::size_t gain = 0;
  std::size_t bias = 0;
};
struct LayerAt {
  NormAt ln1;
  LinearAt qkv;
  LinearAt attn_proj;
  NormAt ln2;
  LinearAt fc;
  LinearAt mlp_proj;
};

/// What the forward pass of one layer keeps for the backward pass.
struct LayerActivations {
  Buffer in;  ///< the residual stream before the layer
  Buffer ln1;
  Buffer ln1_statistics;
  Buffer qkv;
  Buffer probabilities;
  Buffer attention;
  Buffer middle;  ///< the residual stream between the branches
  Buffer ln2;
  Buffer ln2_statistics;
  Buffer fc;
  Buffer gelu;
};

enum Site : std::uint32_t { site_attention = 0, site_mlp = 1, site_embedding = 2 };

}  // namespace

struct Gpt2::State {
  State(const ModelShape& model, int batch_size, float dropout_rate, Precision precision, Ops& on);

  float* forward(const MicroBatch& input, float rate);
  double cross_entropy(float scale, float* row_logits);
  void backward(const MicroBatch& input, float* gradient);

  void layer_forward(std::size_t layer, float* out, const DropoutKey& key, float rate);
  void mlp_backward(std::size_t layer, const DropoutKey& key, float* gradient);
  void attention_backward(std::size_t layer, const DropoutKey& key, float* gradient);

  void split_tokens(std::span<const std::int32_t> tokens);
  void drop(float rate, DropoutKey key, std::size_t layer, Site site, float* values) {
    if (rate > 0) {
      key.layer = static_cast<std::uint32_t>(layer);
      key.site = site;
      ops.dropout(stream, rate, key, values);
    }
  }

  [[nodiscard]] const float* at(std::size_t offset) const { return weights + offset; }
  [[nodiscard]] Weight weight(std::size_t offset) const {
    return {weights + offset, rounded.empty() ? nullptr : rounded.data() + offset};
  }
  [[nodiscard]] NormStatistics statistics(const Buffer& buffer) const {
    return {buffer.get(), buffer.get() + rows};
  }
  void linear(
      std::int64_t inputs, std::int64_t outputs, const float* in, LinearAt where, float* out) {
    ops.linear({rows, inputs, outputs}, in, weight(where.weight), at(where.bias), out);
  }
  void linear_grad(const LinearShape& linear_shape,
                   const float* in,
                   const float* out_grad,
                   LinearAt where,
                   std::span<float* const, 2> in_grad_and_gradient) {
    float* gradient = in_grad_and_gradient[1];
    ops.linear_weight_grad(
        linear_shape, in, out_grad, gradient + where.weight, gradient + where.bias);
    ops.linear_input_grad(linear_shape, out_grad, weight(where.weight), in_grad_and_gradient[0]);
  }
  void norm(const float* in, NormAt where, float* out, const Buffer& kept) {
    const std::array<const float*, 2> affine{at(where.gain), at(where.bias)};
    ops.layernorm({rows, shape.width}, in, affine, out, statistics(kept));
  }
  void norm_grad(
      const float* in, NormAt where, const Buffer& kept, const float* out_grad, float* gradient) {
    const std::array<float*, 3> grads{
        stream_grad.get(), gradient + where.gain, gradient + where.bias};
    ops.layernorm_grad({rows, shape.width}, in, at(where.gain), statistics(kept), out_grad, grads);
  }

  ModelShape shape;
  std::int64_t batch;
  float dropout;
  Ops& ops;
  std::int64_t rows;   ///< positions in a micro-batch
  std::size_t stream;  ///< elements of the residual stream
  std::vector<TensorSpec> layout;
  std::size_t wte = 0;
  std::size_t wpe = 0;
  std::vector<LayerAt> layers;
  NormAt lnf;

  const float* weights = nullptr;
  std::vector<std::uint16_t> rounded;

  std::vector<std::int32_t> input_tokens;
  std::vector<std::int32_t> targets;
  std::vector<LayerActivations> activations;
  Buffer last;  ///< the residual stream after the last layer
  Buffer lnf_out;
  Buffer lnf_statistics;
  Buffer logits;
  std::vector<float> losses;
  Buffer branch;       ///< a branch's output, or its gradient
  Buffer stream_grad;  ///< gradient of the residual stream
  Buffer small_grad;   ///< of a layer's normalised input
  Buffer wide_grad;    ///< of what is up to four times as wide
};

namespace {

AttentionShape attention_shape(const ModelShape& shape, std::int64_t batch) {
  return {batch, shape.context, shape.heads, shape.width / shape.heads};
}

/// Walks the layout in its documented order.
class Cursor {
 public:
  explicit Cursor(std::span<const TensorSpec> layout) : layout_(layout) {}
  std::size_t next() { return layout_[index_++].offset; }
  LinearAt linear() {
    const std::size_t weight = next();
    return {weight, next()};
  }
  NormAt norm() {
    const std::size_t gain = next();
    return {gain, next()};
  }

 private:
  std::span<const TensorSpec> layout_;
  std::size_t index_ = 0;
};

}  // namespace

Gpt2::State::State(
    const ModelShape& model, int batch_size, float dropout_rate, Precision precision, Ops& on)
    : shape(model),
      batch(batch_size),
      dropout(dropout_rate),
      ops(on),
      rows(batch * model.context),
      stream(static_cast<std::size_t>(rows * model.width)),
      layout(gpt2_layout(model)) {
  Cursor cursor(layout);
  wte = cursor.next();
  wpe = cursor.next();
  for (int layer = 0; layer < shape.layers; ++layer) {
    LayerAt where;
    where.ln1 = cursor.norm();
    where.qkv = cursor.linear();
    where.attn_proj = cursor.linear();
    where.ln2 = cursor.norm();
    where.fc = cursor.linear();
    where.mlp_proj = cursor.linear();
    layers.push_back(where);
  }
  lnf = cursor.norm();
  if (precision == Precision::bf16) {
    rounded.resize(flat_size(layout));
  }
  const auto positions = static_cast<std::size_t>(rows);
  const auto scores = static_cast<std::size_t>(batch * shape.heads) *
                      static_cast<std::size_t>(shape.context) *
                      static_cast<std::size_t>(shape.context);
  for (int layer = 0; layer < shape.layers; ++layer) {
    activations.push_back({.in = ops.allocate(stream),
                           .ln1 = ops.allocate(stream),
                           .ln1_statistics = ops.allocate(2 * positions),
                           .qkv = ops.allocate(3 * stream),
                           .probabilities = ops.allocate(scores),
                           .attention = ops.allocate(stream),
                           .middle = ops.allocate(stream),
                           .ln2 = ops.allocate(stream),
                           .ln2_statistics = ops.allocate(2 * positions),
                           .fc = ops.allocate(4 * stream),
                           .gelu = ops.allocate(4 * stream)});
  }
  last = ops.allocate(stream);
  lnf_out = ops.allocate(stream);
  lnf_statistics = ops.allocate(2 * positions);
  logits = ops.allocate(positions * static_cast<std::size_t>(shape.vocab));
  branch = ops.allocate(stream);
  stream_grad = ops.allocate(stream);
  small_grad = ops.allocate(stream);
  wide_grad = ops.allocate(4 * stream);
  losses.resize(positions);
  input_tokens.resize(positions);
  targets.resize(positions);
}

void Gpt2::State::split_tokens(std::span<const std::int32_t> tokens) {
  const auto length = static_cast<std::size_t>(shape.context);
  for (std::size_t sequence = 0; sequence < static_cast<std::size_t>(batch); ++sequence) {
    for (std::size_t i = 0; i < length; ++i) {
      input_tokens[sequence * length + i] = tokens[sequence * (length + 1) + i];
      targets[sequence * length + i] = tokens[sequence * (length + 1) + i + 1];
    }
  }
}

/// Returns the logits.
float* Gpt2::State::forward(const MicroBatch& input, float rate) {
  split_tokens(input.tokens);
  const std::array<const float*, 2> tables{at(wte), at(wpe)};
  ops.embed({rows, shape.width}, shape.context, input_tokens, tables, activations[0].in.get());
  drop(rate, input.key, 0, site_embedding, activations[0].in.get());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    float* out = layer + 1 < layers.size() ? activations[layer + 1].in.get() : last.get();
    layer_forward(layer, out, input.key, rate);
  }
  norm(last.get(), lnf, lnf_out.get(), lnf_statistics);
  ops.linear({rows, shape.width, shape.vocab}, lnf_out.get(), weight(wte), nullptr, logits.get());
  return logits.get();
}

void Gpt2::State::layer_forward(std::size_t layer, float* out, const DropoutKey& key, float rate) {
  const LayerAt& where = layers[layer];
  LayerActivations& a = activations[layer];
  const std::int64_t width = shape.width;
  norm(a.in.get(), where.ln1, a.ln1.get(), a.ln1_statistics);
  linear(width, 3 * width, a.ln1.get(), where.qkv, a.qkv.get());
  ops.attention(
      attention_shape(shape, batch), a.qkv.get(), a.probabilities.get(), a.attention.get());
  linear(width, width, a.attention.get(), where.attn_proj, a.middle.get());
  drop(rate, key, layer, site_attention, a.middle.get());
  ops.add(stream, a.in.get(), a.middle.get());

  norm(a.middle.get(), where.ln2, a.ln2.get(), a.ln2_statistics);
  linear(width, 4 * width, a.ln2.get(), where.fc, a.fc.get());
  ops.gelu(4 * stream, a.fc.get(), a.gelu.get());
  linear(4 * width, width, a.gelu.get(), where.mlp_proj, out);
  drop(rate, key, layer, site_mlp, out);
  ops.add(stream, a.middle.get(), out);
}

double Gpt2::State::cross_entropy(float scale, float* row_logits) {
  ops.cross_entropy(shape.vocab, targets, scale, row_logits, losses);
  double sum = 0;
  for (const float loss : losses) {
    sum += loss;
  }
  return sum;
}

void Gpt2::State::backward(const MicroBatch& input, float* gradient) {
  const LinearShape head{rows, shape.width, shape.vocab};
  ops.linear_weight_grad(head, lnf_out.get(), logits.get(), gradient + wte, nullptr);
  ops.linear_input_grad(head, logits.get(), weight(wte), small_grad.get());
  ops.zero(stream, stream_grad.get());
  norm_grad(last.get(), lnf, lnf_statistics, small_grad.get(), gradient);
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    mlp_backward(layer, input.key, gradient);
    attention_backward(layer, input.key, gradient);
  }
  drop(dropout, input.key, 0, site_embedding, stream_grad.get());
  const std::array<float*, 2> tables{gradient + wte, gradient + wpe};
  ops.embed_grad({rows, shape.width}, shape.context, input_tokens, stream_grad.get(), tables);
}

void Gpt2::State::mlp_backward(std::size_t layer, const DropoutKey& key, float* gradient) {
  const LayerAt& where = layers[layer];
  LayerActivations& a = activations[layer];
  const std::int64_t width = shape.width;
  ops.copy(stream, stream_grad.get(), branch.get());
  drop(dropout, key, layer, site_mlp, branch.get());
  linear_grad({rows, 4 * width, width},
              a.gelu.get(),
              branch.get(),
              where.mlp_proj,
              std::array<float*, 2>{wide_grad.get(), gradient});
  ops.gelu_grad(4 * stream, a.fc.get(), wide_grad.get(), wide_grad.get());
  linear_grad({rows, width, 4 * width},
              a.ln2.get(),
              wide_grad.get(),
              where.fc,
              std::array<float*, 2>{small_grad.get(), gradient});
  norm_grad(a.middle.get(), where.ln2, a.ln2_statistics, small_grad.get(), gradient);
}

void Gpt2::State::attention_backward(std::size_t layer, const DropoutKey& key, float* gradient) {
  const LayerAt& where = layers[layer];
  LayerActivations& a = activations[layer];
  const std::int64_t width = shape.width;
  ops.copy(stream, stream_grad.get(), branch.get());
  drop(dropout, key, layer, site_attention, branch.get());
  linear_grad({rows, width, width},
              a.attention.get(),
              branch.get(),
              where.attn_proj,
              std::array<float*, 2>{small_grad.get(), gradient});
  ops.attention_grad(attention_shape(shape, batch),
                     a.qkv.get(),
                     a.probabilities.get(),
                     small_grad.get(),
                     wide_grad.get());
  linear_grad({rows, width, 3 * width},
              a.ln1.get(),
              wide_grad.get(),
              where.qkv,
              std::array<float*, 2>{small_grad.get(), gradient});
  norm_grad(a.in.get(), where.ln1, a.ln1_statistics, small_grad.get(), gradient);
}

Gpt2::Gpt2(const ModelShape& shape, int batch, float dropout, Precision precision, Ops& ops)
    : state_(std::make_unique<State>(shape, batch, dropout, precision, ops)) {}
Gpt2::~Gpt2() = default;

std::span<const TensorSpec> Gpt2::layout() const {
  return state_->layout;
}

void Gpt2::set_weights(const float* weights) {
  state_->weights = weights;
  if (!state_->rounded.empty()) {
    state_->ops.to_bf16(state_->rounded.size(), weights, state_->rounded.data());
  }
}

double Gpt2::add_gradient(const MicroBatch& input, float* gradient) {
  float* logits = state_->forward(input, state_->dropout);
  const double sum = state_->cross_entropy(input.scale, logits);
  state_->backward(input, gradient);
  return sum;
}

double Gpt2::loss(std::span<const std::int32_t> tokens) {
  float* logits = state_->forward({.tokens = tokens}, 0.0F);
  return state_->cross_entropy(1.0F, logits);
}

}  // namespace acb::train

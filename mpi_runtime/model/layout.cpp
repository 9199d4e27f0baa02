// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/model/layout.h"

#include <functional>
#include <numeric>

namespace acb::train {
namespace {

std::size_t round_up(std::size_t count) {
  return (count + kBlock - 1) / kBlock * kBlock;
}

class LayoutBuilder {
 public:
  void tensor(std::string name, std::vector<std::int64_t> shape) {
    tensors_.push_back({std::move(name), std::move(shape), end_});
    end_ += round_up(tensors_.back().count());
  }
  void norm(const std::string& name, std::int64_t width) {
    tensor(name + ".weight", {width});
    tensor(name + ".bias", {width});
  }
  void linear(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    tensor(name + ".weight", {outputs, inputs});
    tensor(name + ".bias", {outputs});
  }
  std::vector<TensorSpec> take() { return std::move(tensors_); }

 private:
  std::vector<TensorSpec> tensors_;
  std::size_t end_ = 0;
};

}  // namespace

std::size_t TensorSpec::count() const {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

std::vector<TensorSpec> gpt2_layout(const ModelShape& shape) {
  const std::int64_t width = shape.width;
  LayoutBuilder layout;
  layout.tensor("wte", {shape.vocab, width});
  layout.tensor("wpe", {shape.context, width});
  for (int layer = 0; layer < shape.layers; ++layer) {
    const std::string prefix = "h." + std::to_string(layer) + ".";
    layout.norm(prefix + "ln1", width);
    layout.linear(prefix + "attn.qkv", 3 * width, width);
    layout.linear(prefix + "attn.proj", width, width);
    layout.norm(prefix + "ln2", width);
    layout.linear(prefix + "mlp.fc", 4 * width, width);
    layout.linear(prefix + "mlp.proj", width, 4 * width);
  }
  layout.norm("lnf", width);
  return layout.take();
}

std::size_t flat_size(std::span<const TensorSpec> layout) {
  return layout.empty() ? 0 : layout.back().offset + round_up(layout.back().count());
}

bool decays(const TensorSpec& tensor) {
  return tensor.shape.size() >= 2;
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/ops/cpu_ops.h"

#include "mpi_runtime/ops/isa.h"
#include "mpi_runtime/ops/kernels.h"
#include "mpi_runtime/ops/products.h"
#include "mpi_runtime/ops/thread_pool.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace acb::train {
namespace {

// Work per task: enough to outweigh handing it out. All are fixed, so that no result depends on
// how many threads share the tasks.
constexpr std::size_t kElementsPerTask = 16384;
constexpr std::size_t kColumnsPerTask = 64;
constexpr std::int64_t kQueriesPerBlock = 64;

std::size_t pieces(std::size_t count, std::size_t each) {
  return (count + each - 1) / each;
}
std::size_t unsigned_of(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// One head of one sequence.
struct Head {
  std::int64_t width = 0;    ///< of all heads together
  std::int64_t qkv_row = 0;  ///< elements from one position to the next
  std::int64_t qkv = 0;      ///< offset of its first query
  std::int64_t out = 0;
  std::int64_t scores = 0;
};
Head head_at(const AttentionShape& shape, std::size_t number) {
  const auto n = static_cast<std::int64_t>(number);
  const std::int64_t sequence = n / shape.heads;
  const std::int64_t column = n % shape.heads * shape.head_width;
  const std::int64_t width = shape.heads * shape.head_width;
  return {.width = width,
          .qkv_row = 3 * width,
          .qkv = sequence * shape.length * 3 * width + column,
          .out = sequence * shape.length * width + column,
          .scores = n * shape.length * shape.length};
}

/// The products of one block of queries against the keys and values that it may see.
struct AttentionBlock {
  std::int64_t first = 0;
  std::int64_t queries = 0;
  std::int64_t seen = 0;
  const Products::Single* by_keys = nullptr;         ///< {queries, width} x {seen, width}^T
  const Products::Single* by_values = nullptr;       ///< probabilities x values
  const Products::Single* grad_by_values = nullptr;  ///< out_grad x values^T
  const Products::Single* query_grad = nullptr;      ///< score grads x keys
  const Products::Single* key_grad = nullptr;        ///< adds score grads^T x queries
  const Products::Single* value_grad = nullptr;      ///< adds probabilities^T x out_grad
};

class CpuOps final : public Ops {
 public:
  CpuOps(int threads, Precision precision)
      : pool_(threads, Products::use_one_openmp_thread),
        products_(pool_),
        precision_(precision),
        worker_scratch_(static_cast<std::size_t>(threads)) {}

  Buffer allocate(std::size_t count) override {
    constexpr std::size_t kAlignment = 64;
    const std::size_t bytes = pieces(std::max<std::size_t>(count, 1) * sizeof(float), kAlignment);
    auto* memory = static_cast<float*>(std::aligned_alloc(kAlignment, bytes * kAlignment));
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    std::memset(memory, 0, bytes * kAlignment);
    return {memory, [](float* owned) { std::free(owned); }};
  }
  Status status() const override { return products_.status(); }

  void linear(const LinearShape& s,
              const float* in,
              Weight weight,
              const float* bias,
              float* out) override {
    products_.run({.rows = s.rows,
                   .columns = s.outputs,
                   .inner = s.inputs,
                   .a_row = s.inputs,
                   .a_inner = 1,
                   .b_inner = 1,
                   .b_column = s.inputs,
                   .c_row = s.outputs,
                   .bf16 = rounds(),
                   .with_bias = bias != nullptr},
                  {.a = operand(in, s.rows * s.inputs, first_rounded_),
                   .b = operand(weight),
                   .bias = bias,
                   .c = out});
  }

  void linear_input_grad(const LinearShape& s,
                         const float* out_grad,
                         Weight weight,
                         float* in_grad) override {
    products_.run({.rows = s.rows,
                   .columns = s.inputs,
                   .inner = s.outputs,
                   .a_row = s.outputs,
                   .a_inner = 1,
                   .b_inner = s.inputs,
                   .b_column = 1,
                   .c_row = s.inputs,
                   .bf16 = rounds()},
                  {.a = operand(out_grad, s.rows * s.outputs, first_rounded_),
                   .b = operand(weight),
                   .c = in_grad});
  }

  void linear_weight_grad(const LinearShape& s,
                          const float* in,
                          const float* out_grad,
                          float* weight_grad,
                          float* bias_grad) override {
    products_.run({.rows = s.outputs,
                   .columns = s.inputs,
                   .inner = s.rows,
                   .a_row = 1,
                   .a_inner = s.outputs,
                   .b_inner = s.inputs,
                   .b_column = 1,
                   .c_row = s.inputs,
                   .bf16 = rounds(),
                   .accumulate = true},
                  {.a = operand(out_grad, s.rows * s.outputs, first_rounded_),
                   .b = operand(in, s.rows * s.inputs, second_rounded_),
                   .c = weight_grad});
    if (bias_grad != nullptr) {
      by_columns({s.rows, s.outputs}, [=](const kernels::Columns& columns) {
        kernels::column_sums(columns, out_grad, bias_grad);
      });
    }
  }

  void to_bf16(std::size_t count, const float* in, std::uint16_t* out) override {
    by_elements(count, [=](std::size_t begin, std::size_t size) {
      kernels::to_bf16(size, in + begin, out + begin);
    });
  }

  void layernorm(const NormShape& shape,
                 const float* in,
                 std::span<const float* const, 2> gain_and_bias,
                 float* out,
                 NormStatistics statistics) override {
    const std::size_t width = unsigned_of(shape.width);
    by_rows(shape, [=](std::size_t row) {
      std::array<float, 2> kept{};
      kernels::layernorm_row(width, in + row * width, gain_and_bias, out + row * width, kept);
      statistics.mean[row] = kept[0];
      statistics.inverse_deviation[row] = kept[1];
    });
  }

  void layernorm_grad(const NormShape& shape,
                      const float* in,
                      const float* gain,
                      NormStatistics statistics,
                      const float* out_grad,
                      std::span<float* const, 3> in_gain_and_bias_grad) override {
    const std::size_t width = unsigned_of(shape.width);
    float* in_grad = in_gain_and_bias_grad[0];
    by_rows(shape, [=](std::size_t row) {
      const std::array<float, 2> kept{statistics.mean[row], statistics.inverse_deviation[row]};
      kernels::layernorm_grad_row(
          width, in + row * width, gain, kept, out_grad + row * width, in_grad + row * width);
    });
    by_columns(shape, [=](const kernels::Columns& columns) {
      kernels::layernorm_grad_columns(
          columns, in, statistics, out_grad, in_gain_and_bias_grad.last<2>());
    });
  }

  void gelu(std::size_t count, const float* in, float* out) override {
    by_elements(count, [=](std::size_t begin, std::size_t size) {
      kernels::gelu(size, in + begin, out + begin);
    });
  }
  void gelu_grad(std::size_t count,
                 const float* in,
                 const float* out_grad,
                 float* in_grad) override {
    by_elements(count, [=](std::size_t begin, std::size_t size) {
      kernels::gelu_grad(size, in + begin, out_grad + begin, in_grad + begin);
    });
  }

  void attention(const AttentionShape& shape,
                 const float* qkv,
                 float* probabilities,
                 float* out) override {
    const auto blocks = attention_blocks(shape);
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape.head_width));
    pool_.run(unsigned_of(shape.batch * shape.heads), [&](std::size_t number, int worker) {
      const Head head = head_at(shape, number);
      for (const auto& block : blocks) {
        const float* queries = qkv + head.qkv + block.first * head.qkv_row;
        const float* keys = qkv + head.qkv + head.width;
        float* scores = probabilities + head.scores + block.first * shape.length;
        products_.run(block.by_keys, {.a = queries, .b = keys, .c = scores}, worker);
        for (std::int64_t row = 0; row < block.queries; ++row) {
          kernels::softmax_row(unsigned_of(block.first + row + 1),
                               unsigned_of(block.seen),
                               scale,
                               scores + row * shape.length);
        }
        products_.run(
            block.by_values,
            {.a = scores, .b = keys + head.width, .c = out + head.out + block.first * head.width},
            worker);
      }
    });
  }

  void attention_grad(const AttentionShape& shape,
                      const float* qkv,
                      const float* probabilities,
                      const float* out_grad,
                      float* qkv_grad) override {
    const auto blocks = attention_blocks(shape);
    pool_.run(unsigned_of(shape.batch * shape.heads), [&](std::size_t number, int worker) {
      const Head head = head_at(shape, number);
      for (std::int64_t row = 0; row < shape.length; ++row) {
        float* keys = qkv_grad + head.qkv + row * head.qkv_row + head.width;
        std::fill_n(keys, shape.head_width, 0.0F);
        std::fill_n(keys + head.width, shape.head_width, 0.0F);
      }
      for (const auto& block : blocks) {
        block_grad(shape,
                   head,
                   block,
                   {.qkv = qkv + head.qkv,
                    .probabilities = probabilities + head.scores + block.first * shape.length,
                    .out_grad = out_grad + head.out + block.first * head.width,
                    .qkv_grad = qkv_grad + head.qkv},
                   worker);
      }
    });
  }

  void embed(const NormShape& shape,
             std::int64_t length,
             std::span<const std::int32_t> tokens,
             std::span<const float* const, 2> tables,
             float* out) override {
    const std::size_t width = unsigned_of(shape.width);
    by_rows(shape, [=](std::size_t row) {
      const float* token = tables[0] + unsigned_of(tokens[row]) * width;
      const float* position = tables[1] + row % unsigned_of(length) * width;
      std::copy_n(token, width, out + row * width);
      kernels::add(width, position, out + row * width);
    });
  }

  void embed_grad(const NormShape& shape,
                  std::int64_t length,
                  std::span<const std::int32_t> tokens,
                  const float* out_grad,
                  std::span<float* const, 2> table_grads) override {
    by_columns(shape, [=](const kernels::Columns& columns) {
      const std::size_t size = columns.end - columns.begin;
      for (std::size_t row = 0; row < columns.rows; ++row) {
        const float* from = out_grad + row * columns.width + columns.begin;
        const std::size_t token = unsigned_of(tokens[row]);
        const std::size_t position = row % unsigned_of(length);
        kernels::add(size, from, table_grads[0] + token * columns.width + columns.begin);
        kernels::add(size, from, table_grads[1] + position * columns.width + columns.begin);
      }
    });
  }

  void cross_entropy(std::int64_t vocab,
                     std::span<const std::int32_t> targets,
                     float scale,
                     float* logits,
                     std::span<float> losses) override {
    const std::size_t width = unsigned_of(vocab);
    by_rows({static_cast<std::int64_t>(targets.size()), vocab}, [=](std::size_t row) {
      losses[row] =
          kernels::cross_entropy_row(width, unsigned_of(targets[row]), scale, logits + row * width);
    });
  }

  void zero(std::size_t count, float* values) override { std::fill_n(values, count, 0.0F); }
  void copy(std::size_t count, const float* from, float* to) override {
    std::copy_n(from, count, to);
  }
  void add(std::size_t count, const float* from, float* to) override {
    by_elements(count, [=](std::size_t begin, std::size_t size) {
      kernels::add(size, from + begin, to + begin);
    });
  }
  void dropout(std::size_t count, float rate, const DropoutKey& key, float* values) override {
    by_elements(count, [=](std::size_t begin, std::size_t size) {
      kernels::dropout(begin, size, rate, key, values + begin);
    });
  }

 private:
  struct BlockGradData {
    const float* qkv = nullptr;
    const float* probabilities = nullptr;
    const float* out_grad = nullptr;
    float* qkv_grad = nullptr;
  };

  bool rounds() const { return precision_ == Precision::bf16; }

  const void* operand(Weight weight) const {
    return rounds() ? static_cast<const void*>(weight.bf16) : weight.fp32;
  }
  const void* operand(const float* values, std::int64_t count, std::vector<std::uint16_t>& room) {
    if (!rounds()) {
      return values;
    }
    room.resize(std::max(room.size(), unsigned_of(count)));
    to_bf16(unsigned_of(count), values, room.data());
    return room.data();
  }

  template <typename Body>
  void by_elements(std::size_t count, Body body) {
    pool_.run(pieces(count, kElementsPerTask), [&](std::size_t task, int) {
      const std::size_t begin = task * kElementsPerTask;
      body(begin, std::min(kElementsPerTask, count - begin));
    });
  }
  template <typename Body>
  void by_rows(const NormShape& shape, Body body) {
    const std::size_t rows = unsigned_of(shape.rows);
    const std::size_t each = std::max<std::size_t>(
        1, kElementsPerTask / std::max<std::size_t>(1, unsigned_of(shape.width)));
    pool_.run(pieces(rows, each), [&](std::size_t task, int) {
      for (std::size_t row = task * each; row < std::min(rows, (task + 1) * each); ++row) {
        body(row);
      }
    });
  }
  template <typename Body>
  void by_columns(const NormShape& shape, Body body) {
    const std::size_t width = unsigned_of(shape.width);
    pool_.run(pieces(width, kColumnsPerTask), [&](std::size_t task, int) {
      const std::size_t begin = task * kColumnsPerTask;
      body({.rows = unsigned_of(shape.rows),
            .width = width,
            .begin = begin,
            .end = std::min(width, begin + kColumnsPerTask)});
    });
  }

  std::vector<AttentionBlock> attention_blocks(const AttentionShape& shape);
  void block_grad(const AttentionShape& shape,
                  const Head& head,
                  const AttentionBlock& block,
                  const BlockGradData& data,
                  int worker);

  ThreadPool pool_;
  Products products_;
  Precision precision_;
  std::vector<std::vector<float>> worker_scratch_;
  std::vector<std::uint16_t> first_rounded_;
  std::vector<std::uint16_t> second_rounded_;
};

std::vector<AttentionBlock> CpuOps::attention_blocks(const AttentionShape& shape) {
  const std::int64_t width = shape.heads * shape.head_width;
  const std::int64_t row = 3 * width;
  const std::int64_t length = shape.length;
  std::vector<AttentionBlock> blocks;
  for (std::int64_t first = 0; first < length; first += kQueriesPerBlock) {
    const std::int64_t queries = std::min(kQueriesPerBlock, length - first);
    const std::int64_t seen = first + queries;
    // {rows, columns, inner, a_row, a_inner, b_inner, b_column, c_row, bf16, bias, accumulate}
    const auto single = [&](const ProductShape& product) { return products_.prepare(product); };
    blocks.push_back(
        {first,
         queries,
         seen,
         single({queries, seen, shape.head_width, row, 1, 1, row, length}),
         single({queries, shape.head_width, seen, length, 1, row, 1, width}),
         single({queries, seen, shape.head_width, width, 1, 1, row, length}),
         single({queries, shape.head_width, seen, length, 1, row, 1, row}),
         single({seen, shape.head_width, queries, 1, length, row, 1, row, false, false, true}),
         single({seen, shape.head_width, queries, 1, length, width, 1, row, false, false, true})});
  }
  return blocks;
}

void CpuOps::block_grad(const AttentionShape& shape,
                        const Head& head,
                        const AttentionBlock& block,
                        const BlockGradData& data,
                        int worker) {
  auto& scratch = worker_scratch_[static_cast<std::size_t>(worker)];
  scratch.resize(std::max(scratch.size(), unsigned_of(kQueriesPerBlock * shape.length)));
  float* score_grad = scratch.data();
  const float* queries = data.qkv + block.first * head.qkv_row;
  const float* keys = data.qkv + head.width;
  const float* values = keys + head.width;
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.head_width));
  products_.run(block.grad_by_values, {.a = data.out_grad, .b = values, .c = score_grad}, worker);
  for (std::int64_t row = 0; row < block.queries; ++row) {
    kernels::softmax_grad_row(unsigned_of(block.first + row + 1),
                              unsigned_of(block.seen),
                              scale,
                              data.probabilities + row * shape.length,
                              score_grad + row * shape.length);
  }
  products_.run(block.query_grad,
                {.a = score_grad, .b = keys, .c = data.qkv_grad + block.first * head.qkv_row},
                worker);
  float* key_grads = data.qkv_grad + head.width;
  products_.run(block.key_grad, {.a = score_grad, .b = queries, .c = key_grads}, worker);
  products_.run(block.value_grad,
                {.a = data.probabilities, .b = data.out_grad, .c = key_grads + head.width},
                worker);
}

}  // namespace

Result<std::unique_ptr<Ops>> make_cpu_ops(int threads, Precision precision) {
  if (threads < 1) {
    return fail(ErrorCode::invalid,
                "ops: threads: " + std::to_string(threads) + ": must be at least 1");
  }
  if (precision == Precision::bf16 && detect_isa() < Isa::avx512) {
    return fail(ErrorCode::unavailable, "ops: precision bf16: this processor has no AVX-512");
  }
  return std::make_unique<CpuOps>(threads, precision);
}

}  // namespace acb::train

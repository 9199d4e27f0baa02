// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/ops/products.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace acb::train {
namespace {

using dnnl::memory;

/// A tile's longest side. Large enough that packing an operand costs little beside the product,
/// small enough that a layer of a small model has a tile per thread.
constexpr std::int64_t kTileRows = 128;
constexpr std::int64_t kTileColumns = 256;

/// The even split of `extent` into the fewest pieces of at most `most`, in multiples of 16.
std::int64_t tile_extent(std::int64_t extent, std::int64_t most) {
  const std::int64_t pieces = (extent + most - 1) / most;
  const std::int64_t even = (extent + pieces - 1) / pieces;
  return std::min(extent, (even + 15) / 16 * 16);
}

struct Tile {
  std::int64_t row = 0;
  std::int64_t column = 0;
  const Products::Single* kernel = nullptr;
};

struct Plan {
  std::vector<Tile> tiles;
};

}  // namespace

class Products::Single {
 public:
  Single(const ProductShape& shape, const dnnl::engine& engine, int workers) {
    const auto in = shape.bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    const memory::desc a({shape.rows, shape.inner}, in, memory::dims{shape.a_row, shape.a_inner});
    const memory::desc b(
        {shape.inner, shape.columns}, in, memory::dims{shape.b_inner, shape.b_column});
    const memory::desc c(
        {shape.rows, shape.columns}, memory::data_type::f32, memory::dims{shape.c_row, 1});
    const memory::desc bias(
        {1, shape.columns}, memory::data_type::f32, memory::dims{shape.columns, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (shape.accumulate) {
      dnnl::post_ops operations;
      operations.append_sum(1.0F);
      attributes.set_post_ops(operations);
    }
    const auto operation =
        shape.with_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc description(operation, attributes, engine);
    primitive_ = dnnl::matmul(description);
    for (int worker = 0; worker < workers; ++worker) {
      workers_.push_back({dnnl::stream(engine),
                          {memory(a, engine, nullptr),
                           memory(b, engine, nullptr),
                           memory(c, engine, nullptr),
                           memory(shape.with_bias ? bias : memory::desc(), engine, nullptr),
                           // Made on first use: most kernels are run by few of the workers.
                           memory(description.scratchpad_desc(), engine, nullptr)},
                          {}});
    }
    scratch_bytes_ = description.scratchpad_desc().get_size();
    arguments_ = shape.with_bias ? 5 : 4;
  }

  dnnl_status_t run(const ProductData& data, int worker) const {
    auto& mine = workers_[static_cast<std::size_t>(worker)];
    if (mine.scratch.size() < scratch_bytes_ + kAlignment) {
      mine.scratch.resize(scratch_bytes_ + kAlignment);
    }
    auto* scratch = mine.scratch.data();
    scratch += kAlignment - reinterpret_cast<std::uintptr_t>(scratch) % kAlignment;
    // oneDNN's handles are void*; it only reads a, b and bias.
    const std::array<void*, 5> handles{const_cast<void*>(data.a),
                                       const_cast<void*>(data.b),
                                       data.c,
                                       const_cast<float*>(data.bias),
                                       scratch};
    constexpr std::array<int, 5> kNames{
        DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS, DNNL_ARG_SCRATCHPAD};
    std::array<dnnl_exec_arg_t, 5> arguments{};
    int used = 0;
    for (std::size_t i = 0; i < handles.size(); ++i) {
      if (kNames.at(i) == DNNL_ARG_BIAS && arguments_ == 4) {
        continue;
      }
      dnnl_memory_t handle = mine.memories.at(i).get();
      if (const auto set = dnnl_memory_set_data_handle(handle, handles.at(i));
          set != dnnl_success) {
        return set;
      }
      arguments.at(static_cast<std::size_t>(used++)) = {kNames.at(i), handle};
    }
    return dnnl_primitive_execute(primitive_.get(), mine.stream.get(), used, arguments.data());
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Worker {
    dnnl::stream stream;  ///< one per worker: a stream must not be used by two threads
    std::array<memory, 5> memories;
    std::vector<std::uint8_t> scratch;
  };
  dnnl::matmul primitive_;
  mutable std::vector<Worker> workers_;
  std::size_t scratch_bytes_ = 0;
  int arguments_ = 0;
};

struct Products::State {
  explicit State(ThreadPool& threads) : pool(threads), engine(dnnl::engine::kind::cpu, 0) {}

  const Plan& plan(const ProductShape& shape, Products& products) {
    auto& made = plans[shape];
    if (made.tiles.empty()) {
      const std::int64_t rows = tile_extent(shape.rows, kTileRows);
      const std::int64_t columns = tile_extent(shape.columns, kTileColumns);
      for (std::int64_t row = 0; row < shape.rows; row += rows) {
        for (std::int64_t column = 0; column < shape.columns; column += columns) {
          ProductShape tile = shape;
          tile.rows = std::min(rows, shape.rows - row);
          tile.columns = std::min(columns, shape.columns - column);
          made.tiles.push_back({row, column, products.prepare(tile)});
        }
      }
    }
    return made;
  }

  ThreadPool& pool;
  dnnl::engine engine;
  std::map<ProductShape, std::unique_ptr<Single>> kernels;
  std::map<ProductShape, Plan> plans;
  Status first_failure;
  std::atomic<int> failed_execution{dnnl_success};
};

Products::Products(ThreadPool& pool) : state_(std::make_unique<State>(pool)) {
  use_one_openmp_thread();
}
Products::~Products() = default;

void Products::use_one_openmp_thread() {
  omp_set_num_threads(1);
}

const Products::Single* Products::prepare(const ProductShape& shape) {
  auto& kernel = state_->kernels[shape];
  if (!kernel) {
    try {
      kernel = std::make_unique<Single>(shape, state_->engine, state_->pool.size());
    } catch (const dnnl::error& error) {
      if (state_->first_failure) {
        state_->first_failure =
            fail(ErrorCode::unavailable,
                 "ops: making a matrix product: " + std::to_string(shape.rows) + "x" +
                     std::to_string(shape.columns) + "x" + std::to_string(shape.inner) +
                     (shape.bf16 ? " bf16: " : ": ") + error.what());
      }
    }
  }
  return kernel.get();
}

void Products::run(const Single* single, const ProductData& data, int worker) {
  const dnnl_status_t done = single == nullptr ? dnnl_success : single->run(data, worker);
  if (done != dnnl_success) {
    state_->failed_execution = done;
  }
}

void Products::run(const ProductShape& shape, const ProductData& data) {
  const Plan& plan = state_->plan(shape, *this);
  const std::int64_t size = shape.bf16 ? 2 : 4;
  const auto at = [size](const void* base, std::int64_t elements) -> const void* {
    return static_cast<const std::uint8_t*>(base) + elements * size;
  };
  state_->pool.run(plan.tiles.size(), [&](std::size_t number, int worker) {
    const Tile& tile = plan.tiles[number];
    run(tile.kernel,
        {.a = at(data.a, tile.row * shape.a_row),
         .b = at(data.b, tile.column * shape.b_column),
         .bias = shape.with_bias ? data.bias + tile.column : nullptr,
         .c = data.c + tile.row * shape.c_row + tile.column},
        worker);
  });
}

Status Products::status() const {
  if (!state_->first_failure) {
    return state_->first_failure;
  }
  if (const int failed = state_->failed_execution; failed != dnnl_success) {
    return fail(ErrorCode::internal,
                "ops: running a matrix product: oneDNN status " + std::to_string(failed));
  }
  return {};
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
// Matrix products through oneDNN that give the same bits with any number of threads: the output is
// cut into tiles fixed by the product's shape alone, and each tile is a oneDNN primitive made for
// one thread. Plain oneDNN splits by threads, the inner dimension too, and its bits change with
// them.
//
// Debian builds oneDNN over OpenMP. Products sets the OpenMP thread count of the calling thread and
// of the pool's threads to 1, and keeps each primitive's scratch memory per worker.
#pragma once

#include "base/result.h"
#include "mpi_runtime/ops/thread_pool.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace acb::train {

/// c{rows, columns} = a{rows, inner} * b{inner, columns} [+ bias{columns}] [+ c].
struct ProductShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  /// Elements between one index and the next; one of a matrix's two strides is 1.
  std::int64_t a_row = 0;
  std::int64_t a_inner = 0;
  std::int64_t b_inner = 0;
  std::int64_t b_column = 0;
  std::int64_t c_row = 0;
  bool bf16 = false;  ///< a and b are bf16; bias and c are always fp32
  bool with_bias = false;
  bool accumulate = false;  ///< adds to c

  auto operator<=>(const ProductShape&) const = default;
};

/// Where a product's matrices are; a and b are float or bf16 as the shape says.
struct ProductData {
  const void* a = nullptr;
  const void* b = nullptr;
  const float* bias = nullptr;
  float* c = nullptr;
};

class Products {
 public:
  /// `pool` must outlive this.
  explicit Products(ThreadPool& pool);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// The whole product, shared out over the pool. Called from the pool's calling thread.
  void run(const ProductShape& shape, const ProductData& data);

  /// A product that one worker computes alone. prepare() from the calling thread, then run() from
  /// any worker.
  class Single;
  [[nodiscard]] const Single* prepare(const ProductShape& shape);
  void run(const Single* single, const ProductData& data, int worker);

  /// The first failure since construction.
  [[nodiscard]] Status status() const;

  /// Limits the OpenMP threads of the calling thread to one: for the pool's threads at their start.
  static void use_one_openmp_thread();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace acb::train

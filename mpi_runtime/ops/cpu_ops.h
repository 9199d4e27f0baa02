// SPDX-License-Identifier: Apache-2.0
// Ops on the processor: oneDNN for the products, our own kernels for the rest.
#pragma once

#include "mpi_runtime/ops/ops.h"

#include <memory>

namespace acb::train {

/// `threads` >= 1, the calling thread included. With Precision::bf16 the processor must have
/// AVX-512. Leaves the calling thread's OpenMP thread count at 1.
[[nodiscard]] Result<std::unique_ptr<Ops>> make_cpu_ops(int threads, Precision precision);

}  // namespace acb::train

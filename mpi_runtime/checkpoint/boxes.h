// SPDX-License-Identifier: Apache-2.0
// Boxes of tensors as runs of consecutive elements, and what two boxes have in common: the
// arithmetic by which any layout loads what any other saved. Pure functions.
#pragma once

#include "mpi_runtime/checkpoint/section.h"

#include <cstdint>
#include <span>
#include <vector>

namespace acb::train {

/// Elements [first, first + count) of the whole tensor, in row-major order, lie at [at, at + count)
/// of the box.
struct Run {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t at = 0;
  friend bool operator==(const Run&, const Run&) = default;
};

/// Elements that two boxes share, by their place in each.
struct Overlap {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

[[nodiscard]] std::int64_t elements_of(std::span<const std::int64_t> extents);
/// The box of a whole tensor.
[[nodiscard]] Box whole_box(std::span<const std::int64_t> shape);
/// `invalid`, naming the tensor, where the box does not fit its shape.
[[nodiscard]] Status check_box(std::string_view tensor,
                               std::span<const std::int64_t> shape,
                               const Box& box);
/// Ascending, neighbours joined. The box fits the shape (check_box).
[[nodiscard]] std::vector<Run> runs_of(std::span<const std::int64_t> shape, const Box& box);
/// Ascending.
[[nodiscard]] std::vector<Overlap> overlaps(std::span<const Run> from, std::span<const Run> to);
/// Elements covered by any of these overlaps, each counted once.
[[nodiscard]] std::int64_t covered(std::vector<Overlap> pieces);

}  // namespace acb::train

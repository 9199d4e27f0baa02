// SPDX-License-Identifier: Apache-2.0
// What a checkpoint is made of, as its owners describe it. State goes by logical name and global
// position, never by rank, so that any number of ranks loads what any other number saved.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "mpi_runtime/comm/slot_tree.h"
#include "mpi_runtime/model/layout.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace acb::train {

enum class ElementType { f32, bf16, i64, u8 };
[[nodiscard]] std::size_t size_of(ElementType type);
[[nodiscard]] std::string_view name_of(ElementType type);

/// A part of a tensor: offset and extent per dimension, or, with one entry each, a flat range of
/// its elements in row-major order (how a slice of a flat vector cuts a tensor). Parts of different
/// ranks may overlap if they hold the same values.
struct Box {
  std::vector<std::int64_t> offset;
  std::vector<std::int64_t> extent;
};

/// One rank's part of one tensor, and where it lies in memory: row-major within the box, dense.
struct TensorPart {
  std::string tensor;               ///< logical name, unique within the section
  std::vector<std::int64_t> shape;  ///< of the whole tensor
  ElementType type = ElementType::f32;
  Box box;
  std::byte* data = nullptr;  ///< read by saves, written by loads
};

/// A named piece of state with an owner. Every rank registers the same sections; each brings its
/// own parts, which together must cover every tensor. `save` gives, and `load` takes back, small
/// state that is equal on all ranks (counters, positions); rank 0's is written. `load` runs on
/// every rank once all tensors are in place, and must not fail for what `save` gave.
struct Section {
  std::string name;  ///< "weights", "adam.m", "data", ...
  std::vector<TensorPart> parts = {};
  std::function<Json()> save = nullptr;
  std::function<Status(const Json&)> load = nullptr;
};

/// The parts of a rank that holds elements [slice.begin, slice.end) of a flat fp32 vector with this
/// layout; `values` is that slice. Gaps between tensors are not state.
[[nodiscard]] std::vector<TensorPart> slice_parts(std::span<const TensorSpec> layout,
                                                  Range slice,
                                                  std::span<float> values);

}  // namespace acb::train

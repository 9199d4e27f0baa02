// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/section.h"

#include <algorithm>

namespace acb::train {

std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return 4;
    case ElementType::bf16:
      return 2;
    case ElementType::i64:
      return 8;
    case ElementType::u8:
      return 1;
  }
  return 1;
}

std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "f32";
    case ElementType::bf16:
      return "bf16";
    case ElementType::i64:
      return "i64";
    case ElementType::u8:
      return "u8";
  }
  return "";
}

std::vector<TensorPart> slice_parts(std::span<const TensorSpec> layout,
                                    Range slice,
                                    std::span<float> values) {
  std::vector<TensorPart> parts;
  for (const TensorSpec& tensor : layout) {
    const std::size_t begin = std::max(slice.begin, tensor.offset);
    const std::size_t end = std::min(slice.end, tensor.offset + tensor.count());
    if (begin >= end) {
      continue;
    }
    parts.push_back({.tensor = tensor.name,
                     .shape = tensor.shape,
                     .type = ElementType::f32,
                     .box = {{static_cast<std::int64_t>(begin - tensor.offset)},
                             {static_cast<std::int64_t>(end - begin)}},
                     .data = std::as_writable_bytes(values.subspan(begin - slice.begin)).data()});
  }
  return parts;
}

}  // namespace acb::train

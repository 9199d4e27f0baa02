// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/boxes.h"

#include <algorithm>

namespace acb::train {

namespace {

// A box with one entry over a tensor of several dimensions is a flat range.
bool is_flat(std::span<const std::int64_t> shape, const Box& box) {
  return box.offset.size() == 1 && shape.size() != 1;
}

}  // namespace

std::int64_t elements_of(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    count *= extent;
  }
  return count;
}

Box whole_box(std::span<const std::int64_t> shape) {
  return {{0}, {elements_of(shape)}};
}

Status check_box(std::string_view tensor, std::span<const std::int64_t> shape, const Box& box) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid,
                "checkpoint: tensor " + std::string(tensor) + ": box: " + std::string(why));
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  std::int64_t total = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 1 || extent > kMost || (total *= extent) > kMost) {
      return wrong("the shape is not of 1 to 2^48 elements");
    }
  }
  const std::int64_t flat[] = {total};
  const std::span<const std::int64_t> limits = is_flat(shape, box) ? std::span(flat) : shape;
  if (box.offset.size() != limits.size() || box.extent.size() != limits.size()) {
    return wrong("it has another number of dimensions than the tensor");
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (box.offset[i] < 0 || box.extent[i] < 1 || box.offset[i] > limits[i] ||
        box.extent[i] > limits[i] - box.offset[i]) {
      return wrong("it reaches outside the tensor");
    }
  }
  return {};
}

std::vector<Run> runs_of(std::span<const std::int64_t> shape, const Box& box) {
  if (is_flat(shape, box) || shape.empty()) {
    return {{shape.empty() ? 0 : box.offset[0], shape.empty() ? 1 : box.extent[0], 0}};
  }
  const std::size_t last = shape.size() - 1;
  std::vector<std::int64_t> index(box.offset);
  std::vector<Run> runs;
  const std::int64_t rows = elements_of(box.extent) / box.extent[last];
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i <= last; ++i) {
      first = first * shape[i] + index[i];
    }
    if (!runs.empty() && runs.back().first + runs.back().count == first) {
      runs.back().count += box.extent[last];
    } else {
      runs.push_back({first, box.extent[last], row * box.extent[last]});
    }
    for (std::size_t i = last; i-- > 0;) {
      if (++index[i] < box.offset[i] + box.extent[i]) {
        break;
      }
      index[i] = box.offset[i];
    }
  }
  return runs;
}

std::vector<Overlap> overlaps(std::span<const Run> from, std::span<const Run> to) {
  std::vector<Overlap> found;
  for (std::size_t i = 0, j = 0; i < from.size() && j < to.size();) {
    const std::int64_t begin = std::max(from[i].first, to[j].first);
    const std::int64_t from_end = from[i].first + from[i].count;
    const std::int64_t to_end = to[j].first + to[j].count;
    const std::int64_t end = std::min(from_end, to_end);
    if (begin < end) {
      found.push_back(
          {begin, end - begin, from[i].at + begin - from[i].first, to[j].at + begin - to[j].first});
    }
    (from_end <= to_end) ? ++i : ++j;
  }
  return found;
}

std::int64_t covered(std::vector<Overlap> pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Overlap& a, const Overlap& b) {
    return a.first < b.first;
  });
  std::int64_t count = 0;
  std::int64_t reached = 0;
  for (const Overlap& piece : pieces) {
    const std::int64_t end = piece.first + piece.count;
    count += std::max<std::int64_t>(0, end - std::max(reached, piece.first));
    reached = std::max(reached, end);
  }
  return count;
}

}  // namespace acb::train

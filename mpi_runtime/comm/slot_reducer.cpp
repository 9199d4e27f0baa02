// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/comm/slot_tree.h"

#include <algorithm>

namespace acb::train {

namespace {

// left + right, in that order: the order is what makes the bits.
void add_into(float* left, const float* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    left[i] = left[i] + right[i];
  }
}

// Whether two neighbours are the halves of one node.
bool are_halves(std::size_t slots, Range left, Range right) {
  const Range both{left.begin, right.end};
  return split_point(both) == right.begin && subtrees(slots, both).size() == 1;
}

}  // namespace

SlotReducer::SlotReducer(Communicator& comm, std::size_t slots, std::size_t elements)
    : comm_(comm), slots_(slots), elements_(elements), next_slot_(this->slots().begin) {
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (rank != comm_.rank()) {
      for (const Range node : subtrees(slots_, slots_of(slots_, comm_.size(), rank))) {
        arrived_.push_back({node, {}});
      }
    }
  }
}

Range SlotReducer::slots() const {
  return slots_of(slots_, comm_.size(), comm_.rank());
}

Range SlotReducer::slice() const {
  return slice_of(elements_, comm_.size(), comm_.rank());
}

std::vector<float> SlotReducer::take_buffer() {
  if (spare_.empty()) {
    return std::vector<float>(elements_);
  }
  std::vector<float> buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void SlotReducer::merge_siblings() {
  while (partials_.size() >= 2) {
    Partial& left = partials_[partials_.size() - 2];
    Partial& right = partials_.back();
    if (!are_halves(slots_, left.node, right.node)) {
      return;
    }
    add_into(left.values.data(), right.values.data(), elements_);
    left.node.end = right.node.end;
    spare_.push_back(std::move(right.values));
    partials_.pop_back();
  }
}

Status SlotReducer::add(std::size_t slot, std::span<const float> gradients) {
  if (slot != next_slot_ || slot >= slots().end) {
    return fail(ErrorCode::internal,
                "slot reducer: slot " + std::to_string(slot) + " added, expected " +
                    std::to_string(next_slot_) + " of " + std::to_string(slots().begin) + " to " +
                    std::to_string(slots().end - 1));
  }
  if (gradients.size() != elements_) {
    return fail(ErrorCode::internal,
                "slot reducer: " + std::to_string(gradients.size()) + " gradients, expected " +
                    std::to_string(elements_));
  }
  ++next_slot_;
  const Range leaf{slot, slot + 1};
  if (!partials_.empty() && are_halves(slots_, partials_.back().node, leaf)) {
    add_into(partials_.back().values.data(), gradients.data(), elements_);
    partials_.back().node.end = leaf.end;
  } else {
    std::vector<float> values = take_buffer();
    std::copy(gradients.begin(), gradients.end(), values.begin());
    partials_.push_back({leaf, std::move(values)});
  }
  merge_siblings();
  return {};
}

// The part of a rank's slice that is summed in the round that starts at `first`.
Range SlotReducer::chunk_of(int rank, std::size_t first) const {
  const Range owned = slice_of(elements_, comm_.size(), rank);
  return {std::min(owned.begin + first, owned.end),
          std::min(owned.begin + first + kReduceChunk, owned.end)};
}

Status SlotReducer::exchange_chunk(std::size_t first) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  const std::size_t mine = chunk_of(comm_.rank(), first).size();
  std::size_t next_arrived = 0;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (rank == comm_.rank()) {
      continue;
    }
    const Range theirs = chunk_of(rank, first);
    for (const Partial& partial : partials_) {
      if (theirs.size() > 0) {
        sends.push_back(
            {rank, std::as_bytes(std::span(partial.values).subspan(theirs.begin, theirs.size()))});
      }
    }
    const Range held = slots_of(slots_, comm_.size(), rank);
    for (std::size_t i = subtrees(slots_, held).size(); i > 0; --i) {
      Partial& into = arrived_[next_arrived++];
      into.values.resize(mine);
      if (mine > 0) {
        receives.push_back({rank, std::as_writable_bytes(std::span(into.values))});
      }
    }
  }
  return comm_.exchange(sends, receives);
}

// The node's sum over this round's chunk, in the buffer of its leftmost subtree.
float* SlotReducer::fold(Range node, std::size_t first, std::size_t count) {
  for (Partial& partial : partials_) {
    if (partial.node == node) {
      return partial.values.data() + chunk_of(comm_.rank(), first).begin;
    }
  }
  for (Partial& partial : arrived_) {
    if (partial.node == node) {
      return partial.values.data();
    }
  }
  const std::size_t middle = split_point(node);
  float* left = fold({node.begin, middle}, first, count);
  add_into(left, fold({middle, node.end}, first, count), count);
  return left;
}

Status SlotReducer::finish(std::span<float> sum) {
  if (next_slot_ != slots().end || sum.size() != slice().size()) {
    return fail(ErrorCode::internal,
                "slot reducer: finished before slot " + std::to_string(next_slot_) +
                    " or with room for " + std::to_string(sum.size()) + " of " +
                    std::to_string(slice().size()) + " sums");
  }
  std::size_t longest = 0;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    longest = std::max(longest, slice_of(elements_, comm_.size(), rank).size());
  }
  for (std::size_t first = 0; first < longest; first += kReduceChunk) {
    ACB_TRY(exchange_chunk(first));
    const Range chunk = chunk_of(comm_.rank(), first);
    if (chunk.size() > 0) {
      const float* total = fold({0, slots_}, first, chunk.size());
      std::copy_n(total, chunk.size(), sum.begin() + static_cast<std::ptrdiff_t>(first));
    }
  }
  for (Partial& partial : partials_) {
    spare_.push_back(std::move(partial.values));
  }
  partials_.clear();
  next_slot_ = slots().begin;
  return {};
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
// Sums over the slots of a step in one fixed binary tree, so that the bits of a sum depend on the
// number of slots and on nothing else: not on the number of ranks, nor on which rank holds which
// slot.
//
// The tree: a node over n > 1 slots has the largest power of two below n on its left and the rest
// on its right (the shape of RFC 9162's Merkle tree); its value is left + right in fp32. For the
// default of 24 slots a rank holds at most two complete subtrees at every world size that divides
// 24.
//
// Functions on ranges are pure and thread-safe.
#pragma once

#include "mpi_runtime/comm/communicator.h"

#include <cstddef>
#include <span>
#include <vector>

namespace acb::train {

/// [begin, end)
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// The slots of a rank: contiguous, ascending with the rank, as even as possible. 1 <= ranks <=
/// slots.
[[nodiscard]] Range slots_of(std::size_t slots, int ranks, int rank);

/// The slice of the flat parameter vector that a rank owns: whole blocks of kBlock
/// (model/layout.h), contiguous, as even as possible; may be empty where there are more ranks than
/// blocks. `elements` need not be a multiple of kBlock: the last block is then short.
[[nodiscard]] Range slice_of(std::size_t elements, int ranks, int rank);

/// The maximal complete subtrees inside `held`, ascending: their values are all that the rest of
/// the tree needs to know of these slots. At most 2 log2(slots) of them.
[[nodiscard]] std::vector<Range> subtrees(std::size_t slots, Range held);

/// The first slot of the right half of a node over more than one slot.
[[nodiscard]] std::size_t split_point(Range node);

/// Adds up the gradients of one step after another. Memory per rank: one fp32 vector for each
/// subtree that is open or complete (at most 2 log2(slots) + 1 vectors, kept between steps), and a
/// receive buffer of at most kReduceChunk elements for each subtree of the world.
class SlotReducer {
 public:
  /// `comm` must outlive the reducer. 1 <= comm.size() <= slots.
  SlotReducer(Communicator& comm, std::size_t slots, std::size_t elements);

  [[nodiscard]] Range slots() const;  ///< this rank computes these
  [[nodiscard]] Range slice() const;  ///< this rank owns the sum of these elements

  /// The gradients of a slot, `elements` long; they are copied or added before it returns. A rank
  /// calls it once a step for each of its slots, in ascending order; anything else is `internal`.
  /// Does not communicate.
  [[nodiscard]] Status add(std::size_t slot, std::span<const float> gradients);

  /// After every slot of this rank has been added: leaves the tree sum over all slots in `sum`,
  /// which is slice().size() long, and makes ready for the next step. Collective. The
  /// other ranks' subtrees arrive chunk by chunk and are added while they are in cache.
  [[nodiscard]] Status finish(std::span<float> sum);

 private:
  struct Partial {
    Range node;
    std::vector<float> values;
  };
  [[nodiscard]] std::vector<float> take_buffer();
  void merge_siblings();
  [[nodiscard]] Status exchange_chunk(std::size_t first);
  [[nodiscard]] float* fold(Range node, std::size_t first, std::size_t count);
  [[nodiscard]] Range chunk_of(int rank, std::size_t first) const;

  Communicator& comm_;
  std::size_t slots_;
  std::size_t elements_;
  std::size_t next_slot_;
  std::vector<Partial> partials_;          ///< complete subtrees of this rank, ascending
  std::vector<std::vector<float>> spare_;  ///< buffers of earlier steps
  std::vector<Partial> arrived_;           ///< the other ranks' subtrees, one chunk of each
};

/// Elements of a chunk of SlotReducer::finish: 256 KiB, a few times what hides a round trip and
/// small enough to be added from cache.
inline constexpr std::size_t kReduceChunk = std::size_t{1} << 16;

/// Fills in the slices of the other ranks: `whole` is `elements` long on every rank and holds this
/// rank's slice_of. Collective, a ring: every rank sends and receives (ranks - 1) / ranks of it.
[[nodiscard]] Status all_gather(Communicator& comm, std::span<float> whole);

/// The sum of all ranks' values, concatenated in rank order, in the fixed tree over all of them.
/// For one value per slot (loss, tokens) or one per block of a slice (squared norm). Collective;
/// every rank gets the same bits.
[[nodiscard]] Result<double> tree_sum(Communicator& comm, std::span<const double> mine);

/// The fixed tree's sum of values in one process; 0 for none.
[[nodiscard]] double tree_sum(std::span<const double> values);

}  // namespace acb::train

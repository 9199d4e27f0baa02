// SPDX-License-Identifier: Apache-2.0
// AdamW on the slice of the flat parameter vector that a rank owns, with fp32 master weights. The
// gradient's norm is summed per block of kBlock elements, which no slice cuts, so it does not
// depend on the number of ranks; an update whose norm is not finite is left out on every rank.
#pragma once

#include "mpi_runtime/comm/slot_tree.h"
#include "mpi_runtime/model/layout.h"

#include <span>
#include <vector>

namespace acb::train {

struct AdamwSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  ///< decoupled; of matrices only
  double clip = 1.0;          ///< largest global norm of a gradient; 0: no clipping
};

/// The sum of squares of each block of a slice, for the fixed tree over all slices.
[[nodiscard]] std::vector<double> block_squares(std::span<const float> gradient);

/// What to multiply a gradient of this norm by: clip / norm where that is below 1.
[[nodiscard]] double clip_scale(double norm, double clip);

class AdamW {
 public:
  /// For elements [slice.begin, slice.end) of a flat vector with this layout.
  AdamW(const AdamwSettings& settings, std::span<const TensorSpec> layout, Range slice);

  /// Updates `weights` by the gradient times `scale`; both are slice.size() long. `count` is the
  /// number of updates including this one.
  void update(std::span<float> weights,
              std::span<const float> gradient,
              double scale,
              double rate,
              std::int64_t count);

  /// The moments, slice.size() long: state that a checkpoint must hold.
  [[nodiscard]] std::span<float> first_moment() { return first_; }
  [[nodiscard]] std::span<float> second_moment() { return second_; }

 private:
  struct Piece {
    Range range;  ///< within the slice
    bool decays = false;
  };
  AdamwSettings settings_;
  std::vector<Piece> pieces_;
  std::vector<float> first_;
  std::vector<float> second_;
};

}  // namespace acb::train

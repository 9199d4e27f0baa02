// SPDX-License-Identifier: Apache-2.0
// The mathematics of a run, step by step, over however many ranks there are. The weights after a
// step are a function of the data, the settings behind settings_hash() and the instruction set, not
// of the number of ranks or threads.
//
// All ranks make the same calls in the same order. One thread at a time.
#pragma once

#include "mpi_runtime/checkpoint/section.h"
#include "mpi_runtime/comm/communicator.h"
#include "mpi_runtime/config/train_config.h"
#include "mpi_runtime/data/dataset.h"
#include "mpi_runtime/data/sample_order.h"
#include "mpi_runtime/model/gpt2.h"
#include "mpi_runtime/ops/isa.h"
#include "mpi_runtime/optim/adamw.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace acb::train {

/// This program's file as a number: ranks of different builds are no run.
[[nodiscard]] std::string build_id();

/// How the ranks' devices differ from each other, or from the steps `before` (empty: not told);
/// empty: they do not. Pure.
[[nodiscard]] std::string difference_of_devices(std::span<const std::string> devices,
                                                const std::string& before);

struct StepResult {
  std::int64_t step = 0;
  double loss = 0;           ///< mean over the step's targets, in nats
  double gradient_norm = 0;  ///< before clipping
  bool skipped = false;      ///< the gradient was not finite, and the weights are as before
};

class Trainer {
 public:
  /// At step 0, without weights. `comm` and `data` must outlive it; config.threads >= 1.
  /// `invalid`: more ranks than slots, or too little data.
  [[nodiscard]] static Result<std::unique_ptr<Trainer>> create(Communicator& comm,
                                                               const TrainConfig& config,
                                                               const Dataset& data);

  /// The whole state, as a checkpoint saves and loads it: valid as long as the trainer.
  [[nodiscard]] std::vector<Section> sections();

  /// After create() and whatever was loaded, before the first step(): makes the seed's weights if
  /// nothing was loaded (a restart need not wait for them), brings all weights to every rank and
  /// settles the instruction set. The lowest that all ranks have, or that of the loaded state where
  /// they can do with it.
  [[nodiscard]] Status start();

  /// Why weights are not what an undisturbed run's would be; empty: they are. Known after start().
  [[nodiscard]] const std::string& inexact_reason() const { return inexact_reason_; }
  [[nodiscard]] Isa isa() const { return isa_; }

  /// One optimizer step. An error where more than most_skipped steps in a row had no finite
  /// gradient.
  [[nodiscard]] Result<StepResult> step();

  [[nodiscard]] std::int64_t steps_done() const { return progress_.step; }
  [[nodiscard]] std::int64_t tokens_per_step() const;
  [[nodiscard]] std::span<const float> weights() const { return weights_; }

 private:
  struct Progress {
    std::int64_t step = 0;
    std::int64_t updates = 0;  ///< steps that were not skipped
    std::int64_t skipped_in_a_row = 0;
    std::uint64_t sample = 0;  ///< the next sample's number
    std::optional<Isa> isa;    ///< of the steps so far
    std::string device;        ///< of the steps so far; empty: not told
  };

  Trainer(Communicator& comm, const TrainConfig& config, const Dataset& data);
  [[nodiscard]] Json save_progress() const;
  [[nodiscard]] Status load_progress(const Json& json);
  [[nodiscard]] Status settle_isa();
  [[nodiscard]] Status compare_devices();
  [[nodiscard]] double slot_gradient(std::size_t slot);
  void read_samples(std::uint64_t first);
  [[nodiscard]] Status apply(const std::vector<float>& gradient, double norm);

  Communicator& comm_;
  TrainConfig config_;
  const Dataset& data_;
  ModelShape shape_;
  std::vector<TensorSpec> layout_;
  SlotReducer reducer_;
  SampleOrder order_;
  std::vector<float> weights_;  ///< all of them; this rank owns reducer_.slice()
  AdamW optimizer_;
  Progress progress_;
  Isa isa_ = Isa::sse41;
  std::string device_ = device_model() + ", build " + build_id();  ///< of rank 0 once started
  std::string inexact_reason_;

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Gpt2> model_;
  Buffer gradient_;  ///< of a slot
  std::vector<float> sum_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace acb::train

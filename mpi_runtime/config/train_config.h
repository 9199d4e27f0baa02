// SPDX-License-Identifier: Apache-2.0
// The settings of a training run: one table for the TOML file and the flags.
#pragma once

#include "base/settings.h"
#include "mpi_runtime/ops/ops.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace acb::train {

struct TrainConfig {
  int layers = 4;
  int heads = 4;
  int width = 256;
  int context = 256;

  std::filesystem::path data;

  std::int64_t steps = 1000;
  int slots = 0;  ///< 0: see slots_of(config)
  int largest_size = 24;
  int micro_batches = 1;
  int micro_batch = 4;
  double learning_rate = 1e-3;
  double least_learning_rate = 1e-4;
  std::int64_t warmup_steps = 20;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double clip = 1.0;
  double dropout = 0;
  std::int64_t seed = 1;
  Precision precision = Precision::fp32;
  int threads = 0;
  int most_skipped = 10;

  std::filesystem::path run_folder = "run";
  double time_limit_s = 0;
  double leave_before_s = 30;

  std::filesystem::path local;
  std::filesystem::path shared;
  int memory_every = 1;
  double interval_s = 0;
  int keep = 2;
};

[[nodiscard]] const std::vector<Setting<TrainConfig>>& train_settings();

/// The number of slots: as set, or the least multiple of 24 that is at least largest_size.
[[nodiscard]] int slots_of(const TrainConfig& config);

/// What no single row can see: `invalid`, naming the keys.
[[nodiscard]] Status check_config(const TrainConfig& config);

/// Every setting that changes numbers, as text: all but where the data and the run's files lie (the
/// data has a hash of its own), threads, time and checkpoints.
[[nodiscard]] std::map<std::string, std::string> number_settings(const TrainConfig& config);

/// XXH3-128 in hexadecimal over number_settings().
[[nodiscard]] std::string settings_hash(const TrainConfig& config);

}  // namespace acb::train

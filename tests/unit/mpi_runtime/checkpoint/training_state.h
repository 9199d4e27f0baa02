// SPDX-License-Identifier: Apache-2.0
// A small training state spread over ranks, whose every element is a function of (section, element,
// step): what a load must give back can be told without having kept it.
#pragma once

#include "mpi_runtime/checkpoint/checkpoint.h"
#include "tests/unit/mpi_runtime/support/ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace acb::train {

/// A folder that is gone with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "acb-checkpoint-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path make(const std::string& name) const {
    std::filesystem::create_directories(path_ / name);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

class TrainingState {
 public:
  explicit TrainingState(const Communicator& comm)
      : layout_{{"embedding", {300, 7}, 0},
                {"bias", {5}, 3 * kBlock},
                {"head", {90, 33}, 4 * kBlock}},
        slice_(slice_of(7 * kBlock, comm.size(), comm.rank())),
        weights_(slice_.size()),
        momentum_(slice_.size()) {}

  void set(std::int64_t step) {
    step_ = step;
    for (std::size_t i = 0; i < slice_.size(); ++i) {
      weights_[i] = value(0, slice_.begin + i, step);
      momentum_[i] = value(1, slice_.begin + i, step);
    }
  }
  [[nodiscard]] bool is(std::int64_t step) const {
    bool same = step_ == step;
    for (const TensorSpec& tensor : layout_) {
      const std::size_t end = std::min(slice_.end, tensor.offset + tensor.count());
      for (std::size_t i = std::max(slice_.begin, tensor.offset); i < end; ++i) {
        same = same && weights_[i - slice_.begin] == value(0, i, step) &&
               momentum_[i - slice_.begin] == value(1, i, step);
      }
    }
    return same;
  }
  [[nodiscard]] std::vector<Section> sections() {
    return {{"weights", slice_parts(layout_, slice_, weights_)},
            {"momentum", slice_parts(layout_, slice_, momentum_)},
            {"progress",
             {},
             [this] {
               return Json{{"step", step_}};
             },
             [this](const Json& json) -> Status {
               step_ = json_or<std::int64_t>(json, "step", -1);
               return {};
             }}};
  }
  std::vector<float>& weights() { return weights_; }
  [[nodiscard]] std::int64_t step() const { return step_; }

 private:
  static float value(int section, std::size_t element, std::int64_t step) {
    return static_cast<float>(element % 1009) + static_cast<float>(step) * 1024.0F +
           static_cast<float>(section) * 0.5F;
  }
  std::vector<TensorSpec> layout_;
  Range slice_;
  std::vector<float> weights_;
  std::vector<float> momentum_;
  std::int64_t step_ = -1;
};

/// One rank of a run: its state and its checkpointer, with the sections registered.
struct Trainer {
  Trainer(Communicator& comm, const CheckpointConfig& config) : state(comm) {
    auto opened = Checkpointer::open(comm, config);
    EXPECT_TRUE(opened) << opened.error().message;
    checkpointer = std::move(*opened);
    for (Section& section : state.sections()) {
      EXPECT_TRUE(checkpointer->add(std::move(section)));
    }
  }
  /// Loads the newest step; -1 for none, -2 for an error.
  [[nodiscard]] std::int64_t load() {
    const auto loaded = checkpointer->load_newest();
    if (!loaded) {
      error = loaded.error().message;
      return -2;
    }
    return loaded->has_value() ? (*loaded)->step : -1;
  }
  TrainingState state;
  std::unique_ptr<Checkpointer> checkpointer;
  std::string error;
};

inline CheckpointConfig test_config(const std::string& node = "node-0", int start = 1) {
  CheckpointConfig config;
  config.interval_s = 1e6;  // saves to disk when told to
  config.node = node;
  config.run = "run";
  config.start = start;
  config.settings_hash = "settings";
  config.dataset_hash = "dataset";
  return config;
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/train/trainer.h"

#include "base/files.h"
#include "mpi_runtime/checkpoint/checkpoint.h"
#include "mpi_runtime/checkpoint/set_folder.h"
#include "mpi_runtime/train/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

namespace acb::train {
namespace {

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    config_.layers = 1;
    config_.heads = 2;
    config_.width = 32;
    config_.context = 16;
    config_.slots = 6;
    config_.micro_batches = 2;
    config_.micro_batch = 2;
    config_.learning_rate = 1e-2;
    config_.warmup_steps = 2;
    config_.dropout = 0.1;
    config_.threads = 1;
    config_.data = folder_ / "text";
    std::string text;
    for (int i = 0; i < 400; ++i) {
      text += std::to_string(i * i) + " sheep, ";
    }
    ASSERT_TRUE(write_file(config_.data, text));
    auto data = Dataset::open(config_.data);
    ASSERT_TRUE(data);
    data_ = *data;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Rank 0's weights and last loss after `steps` on so many ranks.
  struct Trained {
    std::vector<float> weights;
    StepResult last;
    bool operator==(const Trained& other) const {
      return weights == other.weights && last.loss == other.last.loss;
    }
  };
  Trained train(int ranks, const TrainConfig& config, int steps = 4) {
    auto comms = make_thread_ranks(ranks);
    Trained trained;
    std::vector<std::thread> threads;
    for (auto& comm : comms) {
      threads.emplace_back([&, mine = comm.get()] {
        auto trainer = Trainer::create(*mine, config, *data_);
        ASSERT_TRUE(trainer) << trainer.error().message;
        ASSERT_TRUE((*trainer)->start());
        for (int i = 0; i < steps; ++i) {
          const auto result = (*trainer)->step();
          ASSERT_TRUE(result) << result.error().message;
          if (mine->rank() == 0) {
            trained.last = *result;
          }
        }
        if (mine->rank() == 0) {
          const auto weights = (*trainer)->weights();
          trained.weights.assign(weights.begin(), weights.end());
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    return trained;
  }

  std::filesystem::path folder_ = testing::TempDir() + "trainer_test-" +
                                  testing::UnitTest::GetInstance()->current_test_info()->name();
  TrainConfig config_;
  std::optional<Dataset> data_;
};

TEST_F(TrainerTest, WeightsDoNotDependOnTheNumberOfRanks) {
  const Trained alone = train(1, config_);
  for (const int ranks : {2, 3, 4, 6}) {
    EXPECT_TRUE(train(ranks, config_) == alone) << ranks << " ranks";
  }
}

TEST_F(TrainerTest, WeightsDoNotDependOnTheNumberOfThreads) {
  const Trained alone = train(1, config_);
  for (const int threads : {2, 4}) {
    config_.threads = threads;
    EXPECT_TRUE(train(2, config_) == alone) << threads << " threads";
  }
}

TEST_F(TrainerTest, WeightsDependOnTheSeed) {
  const Trained one = train(1, config_, 1);
  config_.seed = 2;
  EXPECT_NE(train(1, config_, 1).weights, one.weights);
}

TEST_F(TrainerTest, ALoadDoesNotWaitForWeightsThatItReplaces) {
  const auto comms = make_thread_ranks(1);
  auto trainer = Trainer::create(*comms[0], config_, *data_);
  ASSERT_TRUE(trainer);
  const auto none = [&] {
    const auto weights = (*trainer)->weights();
    return std::count(weights.begin(), weights.end(), 0.0F) ==
           static_cast<std::ptrdiff_t>(weights.size());
  };
  const auto sections = (*trainer)->sections();
  ASSERT_TRUE(sections[3].load(Json{{"isa", name_of(detect_isa())}}));
  ASSERT_TRUE((*trainer)->start());
  EXPECT_TRUE(none()) << "loaded weights were replaced by the seed's";
}

TEST_F(TrainerTest, LossFalls) {
  const double first = train(2, config_, 1).last.loss;
  EXPECT_NEAR(first, std::log(256), 0.2);
  EXPECT_LT(train(2, config_, 12).last.loss, 0.8 * first);
}

TEST_F(TrainerTest, MoreRanksThanSlotsAreRefused) {
  const auto comms = make_thread_ranks(7);
  const auto trainer = Trainer::create(*comms[0], config_, *data_);
  ASSERT_FALSE(trainer);
  EXPECT_NE(trainer.error().message.find("7 ranks: at most 6"), std::string::npos)
      << trainer.error().message;
}

TEST_F(TrainerTest, AGradientThatIsNotFiniteLeavesTheWeightsAndEndsTheRunIfItStays) {
  config_.most_skipped = 2;
  const auto comms = make_thread_ranks(1);
  auto created = Trainer::create(*comms[0], config_, *data_);
  ASSERT_TRUE(created);
  Trainer& trainer = **created;
  // A section's parts are the live weights: the way in that a checkpoint has.
  const auto sections = trainer.sections();
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(sections[0].parts[0].data + sizeof(float) * 32 * ' ', &bad, sizeof(bad));
  ASSERT_TRUE(sections[3].load(Json{{"isa", name_of(detect_isa())}}));
  ASSERT_TRUE(trainer.start());
  const std::vector<float> before(trainer.weights().begin(), trainer.weights().end());
  for (int i = 0; i < 2; ++i) {
    const auto result = trainer.step();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->skipped);
  }
  EXPECT_EQ(std::memcmp(before.data(), trainer.weights().data(), before.size() * sizeof(float)), 0);
  const auto third = trainer.step();
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().message.find("3 steps in a row"), std::string::npos)
      << third.error().message;
}

TEST_F(TrainerTest, AnotherDeviceThanBeforeMakesTheRunInexact) {
  for (const char* before : {"same", "another", ""}) {
    const auto comms = make_thread_ranks(1);
    auto trainer = Trainer::create(*comms[0], config_, *data_);
    ASSERT_TRUE(trainer);
    const auto sections = (*trainer)->sections();
    Json progress = sections[3].save();
    progress["isa"] = name_of(detect_isa());
    if (before != std::string("same")) {
      progress["device"] = before;
    }
    ASSERT_TRUE(sections[3].load(progress));
    ASSERT_TRUE((*trainer)->start());
    const std::string& reason = (*trainer)->inexact_reason();
    EXPECT_EQ(reason.empty(), before != std::string("another")) << reason;
    EXPECT_EQ(sections[3].save()["device"], device_model() + ", build " + build_id());
  }
}

TEST(Devices, OfAllRanksAndAllStepsMustBeOne) {
  const std::vector<std::string> same = {"a", "a"};
  const std::vector<std::string> mixed = {"a", "a", "b"};
  EXPECT_EQ(difference_of_devices(same, ""), "");
  EXPECT_EQ(difference_of_devices(same, "a"), "");
  EXPECT_EQ(difference_of_devices(same, "b"), "device a here, b in the steps before");
  EXPECT_EQ(difference_of_devices(mixed, ""), "device b on rank 2, a on rank 0");
}

// The whole loop, as the program runs it, with ranks that are threads.
class RunTest : public TrainerTest {
 protected:
  void run(int ranks, const RunEnvironment& environment, std::vector<Result<RunEnd>>& ends) {
    auto comms = make_thread_ranks(ranks);
    ends.assign(static_cast<std::size_t>(ranks), RunEnd::left);
    std::vector<std::thread> threads;
    for (auto& comm : comms) {
      threads.emplace_back([&, mine = comm.get()] {
        auto reporter = Reporter::connect({}, mine->rank(), mine->size());
        ASSERT_TRUE(reporter);
        ends[static_cast<std::size_t>(mine->rank())] =
            run_training(*mine, config_, environment, **reporter);
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
  RunEnvironment environment() {
    RunEnvironment made;
    made.report.node = "here";
    made.run = "test";
    return made;
  }
  std::vector<std::byte> final_weights() {
    const auto comms = make_thread_ranks(1);
    auto trainer = Trainer::create(*comms[0], config_, *data_);
    auto checkpoints = Checkpointer::open(*comms[0],
                                          {.memory = "",
                                           .local = "",
                                           .shared = config_.run_folder / "read",
                                           .node = "here",
                                           .run = "read",
                                           .settings_hash = settings_hash(config_),
                                           .dataset_hash = data_->hash()});
    EXPECT_TRUE(checkpoints);
    for (auto& section : (*trainer)->sections()) {
      EXPECT_TRUE((*checkpoints)->add(std::move(section)));
    }
    const auto loaded = (*checkpoints)->load_from(config_.run_folder / "final");
    EXPECT_TRUE(loaded) << loaded.error().message;
    EXPECT_TRUE((*trainer)->start());
    const auto bytes = std::as_bytes((*trainer)->weights());
    return {bytes.begin(), bytes.end()};
  }
};

TEST_F(RunTest, LeavingAndGoingOnWithOtherRanksEndsInTheSameWeights) {
  config_.steps = 6;
  config_.run_folder = folder_ / "straight";
  std::vector<Result<RunEnd>> ends;
  run(1, environment(), ends);
  ASSERT_TRUE(ends[0]) << ends[0].error().message;
  EXPECT_EQ(*ends[0], RunEnd::done);
  const auto wanted = final_weights();

  config_.run_folder = folder_ / "broken";
  const std::atomic<bool> stop{true};  // each start does one step and leaves
  RunEnvironment stopping = environment();
  stopping.told_to_stop = &stop;
  for (const int ranks : {3, 1, 4}) {
    run(ranks, stopping, ends);
    for (const auto& end : ends) {
      ASSERT_TRUE(end) << end.error().message;
      EXPECT_EQ(*end, RunEnd::left);
    }
  }
  run(2, environment(), ends);
  ASSERT_TRUE(ends[0]) << ends[0].error().message;
  EXPECT_EQ(*ends[0], RunEnd::done);
  EXPECT_EQ(final_weights(), wanted);
}

TEST_F(RunTest, ARunFolderThatCannotBeWrittenIsRefusedBeforeTheFirstStep) {
  config_.run_folder = config_.data / "run";
  config_.shared = folder_ / "checkpoints";
  std::vector<Result<RunEnd>> ends;
  run(2, environment(), ends);
  for (const auto& end : ends) {
    ASSERT_FALSE(end);
    EXPECT_NE(end.error().message.find("run.folder: " + config_.run_folder.string() + " on here"),
              std::string::npos)
        << end.error().message;
  }
  EXPECT_FALSE(std::filesystem::exists(config_.shared)) << "it was refused too late";
}

TEST_F(RunTest, ADoneRunIsDoneAndItsFinalCheckpointIsNobodyElses) {
  config_.steps = 2;
  config_.run_folder = folder_ / "run";
  std::vector<Result<RunEnd>> ends;
  const auto set_of_final = [&] {
    const auto manifest = read_manifest(config_.run_folder / "final");
    return manifest ? manifest->identity.set : manifest.error().message;
  };
  run(1, environment(), ends);
  ASSERT_TRUE(ends[0]) << ends[0].error().message;
  const std::string first = set_of_final();
  run(3, environment(), ends);
  for (const auto& end : ends) {
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(*end, RunEnd::done);
  }
  EXPECT_EQ(set_of_final(), first) << "computed and saved again";
  config_.seed = 7;
  run(2, environment(), ends);
  for (const auto& end : ends) {
    ASSERT_FALSE(end);
    EXPECT_NE(end.error().message.find("train.seed was 1, is 7"), std::string::npos)
        << end.error().message;
  }
  EXPECT_EQ(set_of_final(), first) << "another run's final checkpoint was replaced";
}

// Every start after it says so, and so does the final checkpoint.
TEST_F(RunTest, WhatHasBecomeInexactStaysSo) {
  config_.steps = 4;
  config_.run_folder = folder_ / "run";
  const std::atomic<bool> stop{true};
  RunEnvironment stopping = environment();
  stopping.told_to_stop = &stop;
  std::vector<Result<RunEnd>> ends;
  {
    const auto comms = make_thread_ranks(1);
    auto trainer = Trainer::create(*comms[0], config_, *data_);
    auto checkpoints = Checkpointer::open(*comms[0],
                                          {.memory = "",
                                           .local = "",
                                           .shared = config_.run_folder / "checkpoints",
                                           .node = "here",
                                           .run = "first",
                                           .settings_hash = settings_hash(config_),
                                           .settings = number_settings(config_),
                                           .dataset_hash = data_->hash()});
    ASSERT_TRUE(checkpoints);
    for (auto& section : (*trainer)->sections()) {
      ASSERT_TRUE((*checkpoints)->add(std::move(section)));
    }
    ASSERT_TRUE((*trainer)->start());
    ASSERT_TRUE((*trainer)->step());
    (*checkpoints)->mark_inexact("sheep");
    ASSERT_TRUE((*checkpoints)->save_now(1, SaveReason::leaving));
  }
  run(2, stopping, ends);
  ASSERT_TRUE(ends[0]) << ends[0].error().message;
  run(1, environment(), ends);
  ASSERT_TRUE(ends[0]) << ends[0].error().message;
  const auto final_set = read_manifest(config_.run_folder / "final");
  ASSERT_TRUE(final_set) << final_set.error().message;
  EXPECT_EQ(final_set->identity.inexact_reason, "sheep");
}

TEST_F(RunTest, OtherSettingsOrDataAreRefusedByName) {
  config_.steps = 3;
  config_.run_folder = folder_ / "run";
  const std::atomic<bool> stop{true};
  RunEnvironment stopping = environment();
  stopping.told_to_stop = &stop;
  std::vector<Result<RunEnd>> ends;
  run(1, stopping, ends);
  ASSERT_TRUE(ends[0]) << ends[0].error().message;
  const TrainConfig good = config_;
  config_.seed = 99;
  run(1, environment(), ends);
  ASSERT_FALSE(ends[0]);
  EXPECT_NE(ends[0].error().message.find("settings"), std::string::npos) << ends[0].error().message;
  config_ = good;
  config_.data = folder_ / "other";
  ASSERT_TRUE(write_file(config_.data, std::string(1000, 'x')));
  run(1, environment(), ends);
  ASSERT_FALSE(ends[0]);
  EXPECT_NE(ends[0].error().message.find("data"), std::string::npos) << ends[0].error().message;
}

}  // namespace
}  // namespace acb::train

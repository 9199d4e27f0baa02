// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/config/train_config.h"

#include <gtest/gtest.h>

namespace acb::train {
namespace {

TrainConfig with(const RawSettings& raw) {
  TrainConfig config;
  const auto done = apply_settings(config, train_settings(), raw, "test");
  EXPECT_TRUE(done) << done.error().message;
  return config;
}

TEST(TrainConfig, SlotsAreTheLeastMultipleOf24ThatTheLargestSizeFitsInto) {
  for (const auto& [size, slots] : {std::pair{1, 24}, {24, 24}, {25, 48}, {1000, 1008}}) {
    EXPECT_EQ(slots_of(with({{"train.largest_size", {std::to_string(size)}}})), slots) << size;
  }
  EXPECT_EQ(slots_of(with({{"train.slots", {"7"}}, {"train.largest_size", {"100"}}})), 7);
}

TEST(TrainConfig, TheHashSeesWhatChangesNumbersAndNothingElse) {
  const std::string base = settings_hash({});
  for (const auto& [key, value] : {std::pair{"model.layers", "5"},
                                   {"train.seed", "2"},
                                   {"train.slots", "48"},
                                   {"train.micro_batch", "8"},
                                   {"train.precision", "bf16"},
                                   {"train.dropout", "0.1"},
                                   {"train.steps", "2000"},
                                   {"train.largest_size", "30"}}) {
    EXPECT_NE(settings_hash(with({{key, {value}}})), base) << key;
  }
  for (const auto& [key, value] : {std::pair{"train.threads", "3"},
                                   {"train.slots", "24"},
                                   {"train.largest_size", "8"},
                                   {"data.path", "/else"},
                                   {"run.folder", "/else"},
                                   {"checkpoint.keep", "9"}}) {
    EXPECT_EQ(settings_hash(with({{key, {value}}})), base) << key;
  }
}

TEST(TrainConfig, ContradictionsNameBothKeys) {
  const std::vector<std::pair<RawSettings, std::string>> rows{
      {{{"model.heads", {"3"}}, {"data.path", {"x"}}},
       "model.width: 256: must be a multiple of model.heads, 3"},
      {{}, "data.path: nothing given: name a text or token file"},
      {{{"data.path", {"x"}}, {"train.least_learning_rate", {"1"}}},
       "train.least_learning_rate: 1: must be at most train.learning_rate, 0.001"},
      {{{"data.path", {"x"}}, {"train.steps", {"5"}}},
       "train.warmup_steps: 20: must be at most train.steps, 5"}};
  for (const auto& [raw, message] : rows) {
    const auto checked = check_config(with(raw));
    ASSERT_FALSE(checked) << message;
    EXPECT_EQ(checked.error().message, message);
  }
}

TEST(TrainConfig, AnUnknownPrecisionIsRefusedWithWhatIsAllowed) {
  TrainConfig config;
  const auto done =
      apply_settings(config, train_settings(), {{"train.precision", {"fp16"}}}, "a.toml");
  EXPECT_EQ(done.error().message, "a.toml: train.precision: 'fp16': must be fp32 or bf16");
}

}  // namespace
}  // namespace acb::train

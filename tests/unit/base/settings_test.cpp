// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace acb {
namespace {

struct Sample {
  int steps = 10;
  double rate = 0.5;
  bool exact = true;
  std::string folder = "run";
  std::map<std::string, std::string> twins;
};

std::vector<Setting<Sample>> rows() {
  return {
      integer_setting("train.steps", &Sample::steps, 1, 1000, "optimizer steps"),
      number_setting("train.rate", &Sample::rate, 0, 1, "learning rate"),
      bool_setting("train.exact", &Sample::exact, "same bits whatever the size"),
      text_setting("run.folder", &Sample::folder, "where checkpoints go"),
      {"twins.*",
       "burst twin of a partition",
       [](Sample& sample, std::string_view key, const std::vector<std::string>& values) -> Status {
         ACB_TRY_ASSIGN(sample.twins[std::string(key.substr(6))], single(key, values));
         return {};
       },
       nullptr}};
}

TEST(Settings, FlagsOverrideTheFile) {
  Sample sample;
  const auto raw =
      parse_toml("a.toml", "[train]\nsteps = 20\nrate = 0.25\n[twins]\nbatch = 'batch-burst'\n");
  ASSERT_TRUE(raw) << raw.error().message;
  ASSERT_TRUE(apply_settings(sample, rows(), *raw, "a.toml"));
  RawSettings flags;
  CLI::App app;
  add_flags(app, flags_of(rows()), flags);
  app.parse("--train-steps 30 --train-exact=no");
  ASSERT_TRUE(apply_settings(sample, rows(), flags, "command line"));
  EXPECT_EQ(sample.steps, 30);
  EXPECT_DOUBLE_EQ(sample.rate, 0.25);
  EXPECT_FALSE(sample.exact);
  EXPECT_EQ(sample.twins.at("batch"), "batch-burst");
}

TEST(Settings, AnErrorNamesTheKeyTheValueAndWhatIsAllowed) {
  struct Row {
    const char* text;
    const char* message;
  };
  for (const Row& row :
       {Row{"[train]\nstep = 1", "a.toml: unknown key train.step; did you mean train.steps?"},
        Row{"[train]\nsteps = 0", "a.toml: train.steps: '0': must be 1 to 1000"},
        Row{"[train]\nsteps = [1, 2]", "a.toml: train.steps: 2 values where one is wanted"},
        Row{"[train]\nexact = 'maybe'", "a.toml: train.exact: 'maybe': must be true or false"}}) {
    Sample sample;
    const auto raw = parse_toml("a.toml", row.text);
    ASSERT_TRUE(raw) << raw.error().message;
    const auto done = apply_settings(sample, rows(), *raw, "a.toml");
    ASSERT_FALSE(done) << row.text;
    EXPECT_EQ(done.error().message, row.message);
  }
  EXPECT_EQ(parse_toml("a.toml", "x = ").error().message.substr(0, 14), "a.toml: line 1");
}

}  // namespace
}  // namespace acb

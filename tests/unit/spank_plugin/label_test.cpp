// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/label.h"

#include <gtest/gtest.h>

namespace acb::spank {
namespace {

TEST(Label, IsReadFromTheControlEnvironment) {
  const auto values = read_label({"OTHER=1",
                                  "_SLURM_SPANK_OPTION_autocloud_autocloud_burst=9",
                                  "AUTOCLOUD_BURST=2",
                                  "AUTOCLOUD_BURST_X=3",
                                  "AUTOCLOUD_GPU",
                                  "AUTOCLOUD_MARKET=spot=1"});
  ASSERT_TRUE(values);
  EXPECT_EQ(values->burst, "2");
  EXPECT_FALSE(values->gpu);
  EXPECT_EQ(values->market, "spot=1");
}

TEST(Label, IsRefusedWhenANameComesTwice) {
  const auto values = read_label({"AUTOCLOUD_BURST=2", "AUTOCLOUD_BURST=64"});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().message, "AUTOCLOUD_BURST: set twice in the job's control environment");
}

TEST(Record, IsOneLineOfNamesAndValues) {
  EXPECT_EQ(format_record({.burst = 2, .own = 3, .gpu = "a100-80gb", .market = Market::on_demand}),
            "autocloud:v1 burst=2 own=3 gpu=a100-80gb market=on-demand");
}

}  // namespace
}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/options.h"

#include <gtest/gtest.h>

namespace acb::spank {
namespace {

const Limits kSite{.max_nodes = 64, .gpu_types = {"v100-32gb", "a100-80gb"}};

TEST(Options, AcceptsNodesWithinTheSitesRange) {
  struct Row {
    const char* text;
    int nodes;
  };
  for (const Row& row : {Row{"1", 1}, Row{"8", 8}, Row{"64", 64}, Row{"008", 8}}) {
    const auto options = parse_options({.burst = row.text}, kSite);
    ASSERT_TRUE(options) << options.error().message;
    ASSERT_TRUE(*options);
    EXPECT_EQ((*options)->nodes, row.nodes) << row.text;
    EXPECT_FALSE((*options)->gpu);
    EXPECT_FALSE((*options)->market);
  }
}

TEST(Options, RefusesEverythingElseNamingOptionValueAndRange) {
  for (const char* text : {"0",
                           "-1",
                           "x",
                           "1e9",
                           "2,3",
                           "",
                           " 8",
                           "8 ",
                           "+8",
                           "8x",
                           "0x8",
                           "1.5",
                           "65",
                           "99999999999999999999"}) {
    const auto options = parse_options({.burst = text}, kSite);
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().code, ErrorCode::invalid);
    EXPECT_EQ(options.error().message,
              "--autocloud-burst: '" + std::string(text) + "': must be 1 to 64");
  }
}

TEST(Options, ChecksTypeAndMarketAgainstWhatIsAllowed) {
  struct Row {
    OptionValues values;
    const char* message;  // nullptr: accepted
  };
  const std::vector<Row> rows = {
      {{.burst = "2", .gpu = "a100-80gb", .market = "spot"}, nullptr},
      {{.burst = "2", .market = "on-demand"}, nullptr},
      {{.burst = "2", .gpu = "h100-80gb"},
       "--autocloud-gpu: 'h100-80gb': must be one of v100-32gb, a100-80gb"},
      {{.burst = "2", .gpu = ""}, "--autocloud-gpu: '': must be one of v100-32gb, a100-80gb"},
      {{.burst = "2", .gpu = "A100-80GB"},
       "--autocloud-gpu: 'A100-80GB': must be one of v100-32gb, a100-80gb"},
      {{.burst = "2", .market = "Spot"}, "--autocloud-market: 'Spot': must be spot or on-demand"},
      {{.gpu = "a100-80gb"}, "--autocloud-gpu: 'a100-80gb': needs --autocloud-burst=N beside it"},
      {{.market = "spot"}, "--autocloud-market: 'spot': needs --autocloud-burst=N beside it"},
  };
  for (const Row& row : rows) {
    const auto options = parse_options(row.values, kSite);
    ASSERT_EQ(options.has_value(), row.message == nullptr);
    if (!options) {
      EXPECT_EQ(options.error().message, row.message);
    }
  }
}

TEST(Options, KeepsWhatWasMeant) {
  const auto options =
      parse_options({.burst = "2", .gpu = "a100-80gb", .market = "on-demand"}, kSite);
  ASSERT_TRUE(options && *options);
  EXPECT_EQ((*options)->gpu, "a100-80gb");
  EXPECT_EQ((*options)->market, Market::on_demand);
}

TEST(Options, AreNothingWhenNoneIsGiven) {
  const auto options = parse_options({}, kSite);
  ASSERT_TRUE(options);
  EXPECT_FALSE(*options);
}

TEST(Options, WithoutAListAnyWellFormedTypeGoes) {
  EXPECT_TRUE(parse_options({.burst = "1", .gpu = "b300-288gb"}, Limits{}));
  for (const char* text : {"", "a b", "a;b", "A100", "a=b"}) {
    EXPECT_FALSE(parse_options({.burst = "1", .gpu = text}, Limits{})) << text;
  }
}

TEST(PluginArguments, AreTakenOrRefusedByName) {
  const auto limits = parse_plugin_arguments({"max_nodes=16", "gpu_types=a100-80gb,h100-80gb"});
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->max_nodes, 16);
  EXPECT_EQ(limits->gpu_types, (std::vector<std::string>{"a100-80gb", "h100-80gb"}));
  EXPECT_EQ(parse_plugin_arguments({})->max_nodes, 1024);

  struct Row {
    const char* argument;
    const char* message;
  };
  for (const Row& row :
       {Row{"max_nodes=0", "plugstack.conf: max_nodes: '0': must be 1 to 65000"},
        Row{"max_nodes", "plugstack.conf: max_nodes: '': must be 1 to 65000"},
        Row{"gpu_types=", "plugstack.conf: gpu_types: '': must be a GPU type"},
        Row{"maxnodes=1",
            "plugstack.conf: argument: 'maxnodes=1': must be max_nodes=N or gpu_types=TYPE,..."}}) {
    const auto refused = parse_plugin_arguments({row.argument});
    ASSERT_FALSE(refused) << row.argument;
    EXPECT_EQ(refused.error().message, row.message);
  }
}

}  // namespace
}  // namespace acb::spank

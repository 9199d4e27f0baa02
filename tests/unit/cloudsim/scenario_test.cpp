// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/scenario.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

Result<Scenario> scenario_of(const std::string& text) {
  auto raw = parse_toml("a.toml", text);
  return raw ? parse_scenario("a.toml", *raw) : tl::unexpected(raw.error());
}

TEST(Scenario, AllTablesAreRead) {
  const auto scenario = scenario_of(
      "seed = 9\n[boot]\ndelay_s = '1..3'\n[quota]\nv100-32gb = 4\n"
      "[offers.a]\ngpu_type = 'v100-32gb'\nmarket = 'spot'\nprice = ['0:1.20', '60:2']\n"
      "[faults.f]\nkind = 'drop'\ncount = 3\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_EQ(scenario->seed, 9U);
  EXPECT_EQ(scenario->boot_s.at(0.5), std::chrono::seconds(2));
  EXPECT_EQ(scenario->quota.at("v100-32gb"), 4);
  ASSERT_EQ(scenario->offers.size(), 1U);
  EXPECT_EQ(scenario->offers[0].offer_id, "a");
  EXPECT_EQ(scenario->offers[0].prices[1].price.micro, 2'000'000);
  ASSERT_EQ(scenario->faults.size(), 1U);
  EXPECT_EQ(scenario->faults[0].kind, FaultKind::drop);
}

TEST(Scenario, AnErrorNamesTheKeyAndWhatIsAllowed) {
  struct Row {
    const char* text;
    const char* message;
  };
  for (const Row& row :
       {Row{"sed = 1", "a.toml: unknown key sed; did you mean seed?"},
        Row{"[offers.a]\nprice = 1", "a.toml: offers.a: needs gpu_type and price"},
        Row{"[offers.a]\nmarket = 'x'",
            "a.toml: offers.a: market: 'x': must be one of on_demand, spot"},
        Row{"[offers.a]\nprice = ['5:1']",
            "a.toml: offers.a: price: '5:1': times must rise and start at 0"},
        Row{"[boot]\ndelay_s = '3..1'", "a.toml: boot.delay_s: '1': must be 3 to 1000000000"}}) {
    const auto scenario = scenario_of(row.text);
    ASSERT_FALSE(scenario) << row.text;
    EXPECT_EQ(scenario.error().message, row.message);
  }
}

TEST(Distribution, ItsTextReadsBack) {
  for (const char* text : {"2", "0.5", "1..3", "exp 30"}) {
    const auto parsed = parse_distribution("d", text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(format_distribution(*parsed), text);
  }
  EXPECT_FALSE(parse_distribution("d", "-1"));
  EXPECT_EQ(parse_distribution("d", "exp 10")->at(0), std::chrono::milliseconds(0));
}

}  // namespace
}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/requests.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

TEST(ParseAllocate, AWrongFieldIsNamed) {
  struct Row {
    const char* patch;
    const char* message;
  };
  for (const Row& row :
       {Row{R"({"gpu_type": null})", "gpu_type: is required"},
        Row{R"({"count": 0})", "count: 0: must be 1 to 100000"},
        Row{R"({"count": "2"})", "count: \"2\": must be 1 to 100000"},
        Row{R"({"duration_min": null})", "duration_min: is required"},
        Row{R"({"market": "on-demand"})", "market: 'on-demand': must be on_demand or spot"},
        Row{R"({"max_price_per_hour": 2})", "max_price_per_hour: 2: must be a text"},
        Row{R"({"tags": {"a:b": "c"}})",
            "tags: 'a:b': must be a text under a key that is not empty and has no ':'"}}) {
    Json body = {{"gpu_type", "v100"}, {"count", 1}, {"duration_min", 0}};
    ASSERT_TRUE(parse_allocate(body));
    body.update(Json::parse(row.patch));
    const auto parsed = parse_allocate(body);
    ASSERT_FALSE(parsed) << row.patch;
    EXPECT_EQ(parsed.error().message, row.message);
    EXPECT_EQ(parsed.error().status, 400);
  }
}

TEST(ParseAllocate, UserDataMayHave16KiB) {
  Json body = {{"gpu_type", "v100"}, {"count", 1}, {"duration_min", 0}};
  body["user_data"] = std::string(16384, 'x');
  EXPECT_TRUE(parse_allocate(body));
  body["user_data"] = std::string(16385, 'x');
  EXPECT_FALSE(parse_allocate(body));
}

TEST(ParseInstanceIds, AbsentIsAllAndAnEmptyListIsRefused) {
  EXPECT_TRUE(parse_instance_ids(Json::object())->empty());
  EXPECT_FALSE(parse_instance_ids({{"instance_ids", Json::array()}}));
  EXPECT_EQ(parse_instance_ids({{"instance_ids", {"i-1"}}})->front(), "i-1");
}

}  // namespace
}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/faults.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

constexpr WallTime kStart{std::chrono::hours(1000)};

FaultRule rule(const std::function<void(FaultRule&)>& set) {
  FaultRule made;
  made.name = "rule";
  set(made);
  return made;
}

TEST(FaultPlan, ARuleHitsTheCallsItDescribes) {
  struct Row {
    const char* what;
    FaultRule rule;
    std::vector<bool> hits;  // of POST /v1/gpu/allocate at seconds 0, 1, 2, 3
  };
  const Row rows[] = {
      {"any", rule([](FaultRule&) {}), {true, true, true, true}},
      {"count", rule([](FaultRule& r) { r.count = 2; }), {true, true, false, false}},
      {"skip", rule([](FaultRule& r) { r.skip = 1, r.count = 1; }), {false, true, false, false}},
      {"after", rule([](FaultRule& r) { r.after_s = 2; }), {false, false, true, true}},
      {"until", rule([](FaultRule& r) { r.until_s = 2; }), {true, true, false, false}},
      {"method", rule([](FaultRule& r) { r.method = "GET"; }), {false, false, false, false}},
      {"path", rule([](FaultRule& r) { r.path = "/v1/gpu/*"; }), {true, true, true, true}},
      {"other path", rule([](FaultRule& r) { r.path = "/v1/jobs"; }), {false, false, false, false}},
      {"key", rule([](FaultRule& r) { r.key = "*/7/*"; }), {true, true, true, true}},
      {"other key", rule([](FaultRule& r) { r.key = "*/8/*"; }), {false, false, false, false}},
      {"never", rule([](FaultRule& r) { r.probability = 0; }), {false, false, false, false}},
      {"boot",
       rule([](FaultRule& r) { r.kind = FaultKind::boot_never; }),
       {false, false, false, false}}};
  for (const Row& row : rows) {
    FaultPlan plan(1);
    plan.add(row.rule, kStart);
    std::vector<bool> hits;
    for (int second = 0; second < 4; ++second) {
      const WallTime now = kStart + std::chrono::seconds(second);
      hits.push_back(plan.on_call("POST", "/v1/gpu/allocate", "vc/7/0/n", now).has_value());
    }
    EXPECT_EQ(hits, row.hits) << row.what;
  }
}

std::vector<bool> luck(std::uint64_t seed) {
  FaultPlan plan(seed);
  plan.add(rule([](FaultRule& r) { r.probability = 0.5; }), kStart);
  std::vector<bool> hits;
  for (int i = 0; i < 200; ++i) {
    hits.push_back(plan.on_call("GET", "/", "", kStart).has_value());
  }
  return hits;
}

TEST(FaultPlan, TheSameSeedHasTheSameLuckAndAnotherOneAnother) {
  EXPECT_EQ(luck(7), luck(7));
  EXPECT_NE(luck(7), luck(8));
  const auto hits = luck(7);
  EXPECT_NEAR(static_cast<double>(std::count(hits.begin(), hits.end(), true)), 100, 30);
}

TEST(FaultPlan, ARuleTakenOutHitsNoMore) {
  FaultPlan plan(1);
  plan.add(rule([](FaultRule&) {}), kStart);
  EXPECT_EQ(plan.remove("other"), 0U);
  EXPECT_EQ(plan.remove("rule"), 1U);
  EXPECT_FALSE(plan.on_call("GET", "/", "", kStart));
}

TEST(FaultPlan, ABootRuleHitsTheBootsOfItsKeyAlone) {
  FaultPlan plan(1);
  plan.add(rule([](FaultRule& r) { r.kind = FaultKind::boot_fails, r.key = "*/7/*", r.count = 1; }),
           kStart);
  EXPECT_FALSE(plan.on_boot("vc/8/0/n", kStart));
  EXPECT_TRUE(plan.on_boot("vc/7/0/n", kStart));
  EXPECT_FALSE(plan.on_boot("vc/7/0/n", kStart));
}

TEST(Matches, AStarStandsForAnyText) {
  struct Row {
    const char* pattern;
    const char* text;
    bool matches;
  };
  for (const Row& row : {Row{"*", "", true},
                         Row{"*", "/a/b", true},
                         Row{"/a", "/a", true},
                         Row{"/a", "/ab", false},
                         Row{"/a*c", "/abbc", true},
                         Row{"/*/release", "/al-1/release", true},
                         Row{"/*/release", "/al-1/releases", false},
                         Row{"", "x", false}}) {
    EXPECT_EQ(matches(row.pattern, row.text), row.matches) << row.pattern << ' ' << row.text;
  }
}

}  // namespace
}  // namespace acb::sim

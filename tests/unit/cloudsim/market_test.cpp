// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/market.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

OfferSpec offer(const char* id, Market market, std::int64_t gpus, const char* zone) {
  OfferSpec made;
  made.offer_id = id;
  made.gpu_type = "v100";
  made.market = market;
  made.gpus_per_instance = gpus;
  made.zone = zone;
  return made;
}

Wish wish(const std::function<void(Wish&)>& set) {
  Wish made;
  made.gpu_type = "v100";
  set(made);
  return made;
}

TEST(Choose, TheCheapestThatFitsOrTheReason) {
  const OfferSpec cheap = offer("cheap", Market::on_demand, 1, "a");
  const OfferSpec dear = offer("dear", Market::on_demand, 1, "b");
  const OfferSpec spot = offer("spot", Market::spot, 2, "a");
  const std::vector<Candidate> market = {
      {&dear, {3'000'000}, 9}, {&cheap, {2'000'000}, 2}, {&spot, {1'000'000}, 4}};
  struct Row {
    const char* what;
    Wish wish;
    const char* expected;  // an offer, or a code
    std::int64_t instances = 0;
  };
  const Row rows[] = {
      {"cheapest", wish([](Wish&) {}), "cheap", 1},
      {"full", wish([](Wish& w) { w.gpus = 3; }), "dear", 3},
      {"part", wish([](Wish& w) { w.gpus = 3, w.all_or_nothing = false; }), "cheap", 2},
      {"zone", wish([](Wish& w) { w.zone = "b"; }), "dear", 1},
      {"spot", wish([](Wish& w) { w.market = Market::spot, w.gpus = 4; }), "spot", 2},
      {"pinned", wish([](Wish& w) { w.offer_id = "spot", w.gpus = 2; }), "spot", 1},
      {"odd", wish([](Wish& w) { w.market = Market::spot, w.gpus = 3; }), "invalid_argument"},
      {"unknown", wish([](Wish& w) { w.gpu_type = "x"; }), "invalid_argument"},
      {"none left", wish([](Wish& w) { w.gpus = 10; }), "insufficient_capacity"},
      {"at the price", wish([](Wish& w) { w.max_price = Money{2'000'000}; }), "cheap", 1},
      {"too dear", wish([](Wish& w) { w.max_price = Money{1'999'999}; }), "price_exceeded"}};
  for (const Row& row : rows) {
    const auto choice = choose(row.wish, market);
    EXPECT_EQ(choice ? choice->offer->offer_id : choice.error().code, row.expected) << row.what;
    EXPECT_EQ(choice ? choice->instances : 0, row.instances) << row.what;
  }
}

TEST(PriceAt, TheLatestPointThatHasPassedCounts) {
  OfferSpec made;
  made.prices = {{std::chrono::seconds(0), {1}}, {std::chrono::seconds(10), {2}}};
  EXPECT_EQ(price_at(made, std::chrono::milliseconds(9'999)).micro, 1);
  EXPECT_EQ(price_at(made, std::chrono::seconds(10)).micro, 2);
}

}  // namespace
}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/cli/views.h"

#include <gtest/gtest.h>

namespace acb::cloud {
namespace {

WallTime at(const char* text) {
  return parse_time("test", text).value();
}

TEST(StatusView, TellsWhyABurstWaits) {
  const auto reply = parse_json("test", R"({"bursts":[{"job":1234,"restart":0,"state":"waiting",
    "wanted":2,"reason":{"text":"no a100-80gb in eu-1","class":"no_capacity",
    "code":"insufficient_capacity","request_id":"req-17"},
    "slurm_reason":"BeginTime",
    "next_try":"2026-11-30T21:00:08.500Z","failures":3,"cost":"0.24","currency":"USD","nodes":[
    {"node":"burst-0","state":"booting","instance":"i-1","address":null,"gpu_type":"a100-80gb",
     "market":"spot","price_per_hour":"2.49","cost":"0.24","since":"2026-11-30T21:00:00.000Z"}]}]})");
  EXPECT_EQ(status_view(*reply, at("2026-11-30T21:00:01Z")),
            "job 1234 (start 0): waiting, 2 rented nodes wanted\n"
            "  reason: no a100-80gb in eu-1 (code insufficient_capacity, request req-17)\n"
            "  in Slurm's queue: BeginTime\n"
            "  next try: 2026-11-30T21:00:08Z, in 8 s, after 3 failures\n"
            "  cost so far: 0.24 USD\n"
            "  NODE     STATE    SINCE                 INSTANCE  ADDRESS  GPU        MARKET  PER "
            "HOUR  COST\n"
            "  burst-0  booting  2026-11-30T21:00:00Z  i-1       -        a100-80gb  spot    2.49  "
            "    0.24\n");
  EXPECT_EQ(status_view(Json{{"bursts", Json::array()}}, WallTime()), "no bursts\n");
}

TEST(Views, ShowWhateverComesWithoutControlCharacters) {
  const Json odd{{"bursts", {{{"job", "x"}, {"reason", {{"text", "a\x1b[2Jb"}}}}}}};
  EXPECT_EQ(status_view(odd, WallTime()),
            "job x (start -): -, - rented nodes wanted\n  reason: a?[2Jb\n  cost so far: -\n");
  EXPECT_EQ(nodes_view(Json::object()),
            "NODE  STATE  SLURM  JOB  START  INSTANCE  ADDRESS  SINCE\n");
}

TEST(StatusView, CountsOneNodeAsOne) {
  const Json one{{"bursts", {{{"job", 1}, {"restart", 0}, {"state", "renting"}, {"wanted", 1}}}}};
  EXPECT_EQ(status_view(one, WallTime()),
            "job 1 (start 0): renting, 1 rented node wanted\n  cost so far: -\n");
}

TEST(LeasesView, PutsTheTenthTryBehindTheSecondAndNamesTheCurrency) {
  const auto reply = parse_json("test", R"({"leases":[
    {"job":7,"restart":0,"node":"b-0","attempt":10,"cost":"0.10","currency":"USD"},
    {"job":7,"restart":0,"node":"b-0","attempt":2,"cost":"0.20","currency":"USD"}]})");
  const std::string text = leases_view(*reply);
  ASSERT_NE(text.find("0.20 USD"), std::string::npos) << text;
  EXPECT_LT(text.find("0.20 USD"), text.find("0.10 USD"));
}

TEST(CostOfLeases, AddsExactlyByJob) {
  const auto reply = parse_json("test", R"({"leases":[
    {"job":7,"user":"ada","billed_s":60,"cost":"0.1","currency":"USD"},
    {"job":7,"user":"ada","billed_s":61,"cost":"0.2","currency":"USD"},
    {"job":9,"user":"bob","billed_s":10,"cost":"0.000001","currency":"USD"},
    {"job":9,"user":"bob","billed_s":null,"cost":null}]})");
  const Json costs = cost_of_leases(*reply);
  EXPECT_EQ(costs["cost"], "0.300001");
  EXPECT_EQ(
      costs["jobs"][0],
      (Json{{"job", 7}, {"user", "ada"}, {"leases", 2}, {"billed_s", 121}, {"cost", "0.30"}}));
  EXPECT_EQ(cost_view(costs),
            "JOB  USER  LEASES  BILLED S  COST\n"
            "7    ada   2       121       0.30\n"
            "9    bob   2       10        0.000001\n"
            "total: 0.300001 USD\n");
}

}  // namespace
}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "cloudburst/hooks/order.h"
#include "cloudburst/hooks/prolog.h"
#include "cloudburst/slurm/hostlist.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace acb::cloud {
namespace {

using std::chrono::milliseconds;

TEST(Hostlist, ExpandsAndCompresses) {
  EXPECT_EQ(expand_hosts("burst-[0-1,3],own-7").value(),
            (std::vector<std::string>{"burst-0", "burst-1", "burst-3", "own-7"}));
  EXPECT_TRUE(expand_hosts("").value().empty());
  EXPECT_FALSE(expand_hosts("burst-[0-"));
  EXPECT_EQ(compress_hosts({"burst-3", "burst-1", "burst-0", "burst-1"}), "burst-[0-1,3]");
  EXPECT_EQ(compress_hosts({}), "");
}

TEST(ShareHosts, PartsOursFromTheOthers) {
  const auto shares = share_hosts("aws-[1-2],burst-[2-5]", "burst-[0-3]").value();
  EXPECT_EQ(shares.ours, "burst-[2-3]");
  EXPECT_EQ(shares.others, "aws-[1-2],burst-[4-5]");
  EXPECT_EQ(share_hosts("aws-1", "").value().ours, "");
  EXPECT_FALSE(share_hosts("burst-[", "burst-[0-3]"));
}

TEST(OrderText, NamesTheHostsAndTheTime) {
  const auto order = parse_json("order", order_text({"resume", "b-[0-1]", WallTime()}));
  ASSERT_TRUE(order);
  EXPECT_EQ(*order,
            (Json{{"kind", "resume"}, {"hosts", "b-[0-1]"}, {"at", "1970-01-01T00:00:00.000Z"}}));
}

TEST(OrderName, SortsByTime) {
  const std::string first = order_name("resume", 7);
  const std::string second = order_name("suspend", 6);
  EXPECT_LE(first.substr(0, 19), second.substr(0, 19));
  EXPECT_TRUE(first.ends_with("-7-resume.json"));
}

TEST(WriteOrder, MakesTheInboxWhereItIsMissing) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("acb-order-" + random_hex(8));
  ASSERT_TRUE(make_folders(folder));
  ASSERT_TRUE(write_order(folder / "spool" / "inbox", {"resume", "b-0", WallTime()}));
  int orders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "spool" / "inbox")) {
    EXPECT_EQ(entry.path().extension(), ".json");
    ++orders;
  }
  EXPECT_EQ(orders, 1);
  std::filesystem::remove_all(folder);
}

// A daemon that answers from a script, and a clock that only sleeping and waiting move.
struct ScriptedWorld {
  std::vector<Result<Json>> answers;  ///< the last one repeats
  std::size_t asked = 0;
  milliseconds time{0};
  std::vector<Json> requests;

  PrologWorld world() {
    return {[this](const Json& request, milliseconds limit) {
              requests.push_back(request);
              Result<Json> answer = answers[std::min(asked++, answers.size() - 1)];
              if (!answer && answer.error().code == ErrorCode::timeout) {
                time += limit;
              }
              return answer;
            },
            [this] { return time; },
            [this](milliseconds length) { time += length; }};
  }
};

TEST(WaitForGo, AsksUntilTheDaemonSaysGo) {
  ScriptedWorld script;
  script.answers = {Json{{"go", false}, {"restart", 3}}, Json{{"go", false}}, Json{{"go", true}}};
  EXPECT_EQ(wait_for_go({17, -1}, script.world()), PrologEnd::go);
  EXPECT_EQ(script.time, milliseconds(200));
  EXPECT_EQ(script.requests[0], (Json{{"op", "prolog"}, {"job", 17}, {"restart", -1}}));
  EXPECT_EQ(script.requests[2]["restart"], 3);
}

TEST(WaitForGo, GivesUpAfterFiveSecondsWithoutADaemon) {
  struct Row {
    const char* name;
    Result<Json> answer;
  };
  for (const Row& row : {Row{"not there", fail(ErrorCode::unavailable, "")},
                         Row{"hangs", fail(ErrorCode::timeout, "")},
                         Row{"fails", fail(ErrorCode::internal, "")},
                         Row{"talks nonsense", Json{{"status", "fine"}}}}) {
    ScriptedWorld script;
    script.answers = {row.answer};
    EXPECT_EQ(wait_for_go({17, 0}, script.world()), PrologEnd::no_daemon) << row.name;
    EXPECT_GE(script.time, milliseconds(4900)) << row.name;
    EXPECT_LE(script.time, milliseconds(5200)) << row.name;
  }
}

TEST(WaitForGo, OutlastsARestartOfTheDaemon) {
  ScriptedWorld script;
  script.answers.assign(600, Json{{"go", false}});
  script.answers.insert(script.answers.end(), 45, fail(ErrorCode::unavailable, ""));
  script.answers.insert(script.answers.end(), 45, Json{{"go", false}});
  script.answers.insert(script.answers.end(), 45, fail(ErrorCode::unavailable, ""));
  script.answers.emplace_back(Json{{"go", true}});
  EXPECT_EQ(wait_for_go({17, 0}, script.world()), PrologEnd::go);
}

}  // namespace
}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/inbox.h"

#include "base/files.h"
#include "cloudburst/hooks/order.h"

#include <gtest/gtest.h>

namespace acb::cloud {
namespace {

class InboxFolder : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(make_folders(folder_)); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void put(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(write_file(folder_ / name, text));
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("acb-inbox-" + random_hex(8));
};

TEST_F(InboxFolder, GivesWhatTheHooksWroteOldestFirstAndForgetsWhatIsTaken) {
  const WallTime at{std::chrono::milliseconds(1'800'000'000'123)};
  ASSERT_TRUE(write_order(folder_, {"resume", "burst-[0-1,3]", at}));
  ASSERT_TRUE(write_order(folder_, {"suspend", "burst-2", at}));
  put("unfinished.tmp", "{");
  const auto inbox = read_orders(folder_);
  ASSERT_TRUE(inbox) << inbox.error().message;
  ASSERT_EQ(inbox->orders.size(), 2U);
  EXPECT_EQ(inbox->orders.at(0).kind, "resume");
  EXPECT_EQ(inbox->orders.at(0).hosts, (std::vector<std::string>{"burst-0", "burst-1", "burst-3"}));
  EXPECT_EQ(inbox->orders.at(0).at, at);
  EXPECT_EQ(inbox->orders.at(1).kind, "suspend");
  ASSERT_TRUE(remove_orders(folder_, inbox->orders));
  EXPECT_TRUE(read_orders(folder_)->orders.empty());
  EXPECT_TRUE(remove_orders(folder_, inbox->orders)) << "orders that are gone already";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "unfinished.tmp"));
}

TEST_F(InboxFolder, MovesAsideWhatIsNoOrder) {
  struct Case {
    const char* name;
    const char* text;
  };
  for (const Case& c :
       {Case{"empty", ""},
        Case{"half", R"({"kind":"resume","hosts":"burst-0")"},
        Case{"no object", "[1]"},
        Case{"other kind", R"({"kind":"reboot","hosts":"b","at":"2026-11-30T21:00:00Z"})"},
        Case{"kind of another type", R"({"kind":1,"hosts":"b","at":"2026-11-30T21:00:00Z"})"},
        Case{"broken hosts", R"({"kind":"resume","hosts":"b-[0","at":"2026-11-30T21:00:00Z"})"},
        Case{"no time", R"({"kind":"resume","hosts":"b"})"}}) {
    put("1-bad.json", c.text);
    put("2-good.json", R"({"kind":"resume","hosts":"burst-0","at":"2026-11-30T21:00:00Z"})");
    const auto inbox = read_orders(folder_);
    ASSERT_TRUE(inbox) << c.name << ": " << inbox.error().message;
    ASSERT_EQ(inbox->orders.size(), 1U) << c.name;
    EXPECT_EQ(inbox->orders.front().name, "2-good.json") << c.name;
    EXPECT_EQ(read_file(folder_ / "1-bad.json.bad").value(), c.text) << c.name;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "1-bad.json")) << c.name;
    std::filesystem::remove(folder_ / "1-bad.json.bad");
  }
}

TEST_F(InboxFolder, LeavesWhatCannotBeReadJustNow) {
  ASSERT_TRUE(make_folders(folder_ / "1-resume.json"));
  const auto inbox = read_orders(folder_);
  ASSERT_TRUE(inbox);
  EXPECT_TRUE(inbox->orders.empty());
  EXPECT_NE(inbox->unread.find("1-resume.json"), std::string::npos) << inbox->unread;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "1-resume.json"));
}

TEST_F(InboxFolder, ThatIsMissingIsNamed) {
  const auto inbox = read_orders(folder_ / "none");
  ASSERT_FALSE(inbox);
  EXPECT_NE(inbox.error().message.find((folder_ / "none").string()), std::string::npos);
}

}  // namespace
}  // namespace acb::cloud

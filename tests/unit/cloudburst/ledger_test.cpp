// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/ledger/ledger.h"

#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace acb::cloud {
namespace {

using ::testing::HasSubstr;

const WallTime kNow{std::chrono::milliseconds(1'800'000'000'123)};

class LedgerFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("acb-ledger-" + std::to_string(getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "ledger.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] Book reload() const {
    auto ledger = Ledger::open(path_);
    EXPECT_TRUE(ledger) << ledger.error().message;
    auto book = ledger->load(kNow - std::chrono::hours(1));
    EXPECT_TRUE(book) << book.error().message;
    return *book;
  }
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

Lease sample_lease(const std::string& node, std::uint32_t attempt) {
  Lease lease;
  lease.key = "demo/7/1/" + node + "/" + std::to_string(attempt);
  lease.made_for = {7, 1, kNow};
  lease.node = node;
  lease.attempt = attempt;
  lease.owner = {8, 0, kNow};
  lease.state = LeaseState::creating;
  lease.gpu_type = "a100-80gb";
  lease.market = Market::spot;
  lease.offer_id = "o-1";
  lease.price_per_hour = Money::from_micros(2'490'000);
  lease.currency = "USD";
  lease.minimum_min = 10;
  lease.granularity_s = 60;
  lease.reserved = Money::from_micros(9'000'001);
  lease.request = "{\"gpu_type\":\"a100-80gb\"}";
  lease.secret_sha256 = "00ff";
  lease.request_id = "req-5";
  lease.tries = 3;
  lease.unanswered = true;
  lease.doubtful = true;
  lease.sent = kNow;
  lease.next_try = kNow + std::chrono::milliseconds(1);
  lease.checked = kNow;
  lease.created = kNow;
  lease.deadline = kNow + std::chrono::minutes(5);
  lease.idle = kNow;
  lease.reclaim = kNow;
  lease.lost = true;
  lease.error_class = ErrorClass::throttled;
  lease.error = "throttled: 'quoted'; --";
  lease.billed_from = kNow;
  lease.billed_s = 61;
  lease.cost = Money::from_micros(41'500);
  return lease;
}

TEST_F(LedgerFile, GivesBackEveryRowAsItWas) {
  Changes changes;
  changes.leases = {sample_lease("burst-0", 1)};
  Burst burst;
  burst.id = {7, 1, kNow};
  burst.uid = 1000;
  burst.state = BurstState::failed;
  burst.nodes = 2;
  burst.gpu_type = "a100-80gb";
  burst.fails = 3;
  burst.reason = "no_capacity: none";
  burst.told = "words";
  burst.lifted = true;
  burst.opened = kNow;
  burst.configuring = kNow;
  burst.retry_at = kNow;
  changes.bursts = {burst};
  changes.orders = {{"1-2-suspend.json", "suspend", {"burst-0", "burst-1"}, kNow, false}};
  changes.events = {{kNow, 7, "burst-0", "renting"}};
  {
    auto ledger = Ledger::open(path_);
    ASSERT_TRUE(ledger) << ledger.error().message;
    ASSERT_TRUE(ledger->save(changes));
  }
  const Book book = reload();
  EXPECT_EQ(book.leases.at(changes.leases[0].key), changes.leases[0]);
  EXPECT_EQ(book.bursts.at(burst.id), burst);
  EXPECT_EQ(book.orders.at("1-2-suspend.json"), changes.orders[0]);
  EXPECT_EQ(book.attempts.at({7, 1, "burst-0"}), 1U);
  auto ledger = Ledger::open(path_);
  const auto events = ledger->events(7, 10);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ(events->front().text, "renting");
  EXPECT_TRUE(ledger->events(9, 10)->empty());
}

TEST_F(LedgerFile, RefusesASecondServingMachineOfANodeAndKeepsTheWholeChangeOut) {
  auto ledger = Ledger::open(path_);
  ASSERT_TRUE(ledger);
  Changes first;
  first.leases = {sample_lease("burst-0", 1)};
  ASSERT_TRUE(ledger->save(first));
  Changes second;
  second.leases = {sample_lease("burst-1", 1), sample_lease("burst-0", 2)};
  const auto saved = ledger->save(second);
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("UNIQUE"));
  EXPECT_EQ(ledger->load(kNow)->leases.size(), 1U);
}

TEST_F(LedgerFile, TheEndOfALeaseAndTheNextOneMayComeInAnyOrder) {
  auto ledger = Ledger::open(path_);
  Changes first;
  first.leases = {sample_lease("burst-0", 1)};
  ASSERT_TRUE(ledger->save(first));
  Lease gone = first.leases[0];
  gone.state = LeaseState::gone;
  gone.closed = kNow;
  Changes second;
  second.leases = {sample_lease("burst-0", 2), gone};
  EXPECT_TRUE(ledger->save(second));
}

TEST_F(LedgerFile, OldClosedLeasesAreLeftOutButTheirAttemptsAreKnown) {
  Lease gone = sample_lease("burst-0", 5);
  gone.state = LeaseState::gone;
  gone.closed = kNow - std::chrono::hours(2);
  {
    auto ledger = Ledger::open(path_);
    Changes changes;
    changes.leases = {gone};
    ASSERT_TRUE(ledger->save(changes));
  }
  const Book book = reload();
  EXPECT_TRUE(book.leases.empty());
  EXPECT_EQ(book.attempts.at({7, 1, "burst-0"}), 5U);
}

TEST_F(LedgerFile, OnlyItsOwnerReadsIt) {
  auto ledger = Ledger::open(path_);
  ASSERT_TRUE(ledger);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(LedgerFile, ASecondProcessIsRefused) {
  auto first = Ledger::open(path_);
  ASSERT_TRUE(first);
  const auto second = Ledger::open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
}

TEST_F(LedgerFile, ANewerSchemaIsRefused) {
  { ASSERT_TRUE(Ledger::open(path_)); }
  SQLite::Database(path_.string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version=99");
  const auto ledger = Ledger::open(path_);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().code, ErrorCode::invalid);
  EXPECT_THAT(ledger.error().message, HasSubstr("99: written by a newer release"));
}

TEST_F(LedgerFile, WhatIsNoLedgerIsCalledCorrupt) {
  ASSERT_TRUE(write_file(path_, std::string(8192, 'x')));
  const auto ledger = Ledger::open(path_);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().code, ErrorCode::corrupt);
  EXPECT_THAT(ledger.error().message, HasSubstr(path_.string()));
}

TEST_F(LedgerFile, ATornTailKeepsWhatWasSaved) {
  {
    auto ledger = Ledger::open(path_);
    Changes changes;
    changes.leases = {sample_lease("burst-0", 1)};
    ASSERT_TRUE(ledger->save(changes));
    // As the disk looks after a power cut in the middle of the next write.
    std::filesystem::copy_file(path_, folder_ / "cut.db");
    std::filesystem::copy_file(folder_ / "ledger.db-wal", folder_ / "cut.db-wal");
  }
  std::filesystem::resize_file(folder_ / "cut.db-wal",
                               std::filesystem::file_size(folder_ / "cut.db-wal") + 777);
  auto ledger = Ledger::open(folder_ / "cut.db");
  ASSERT_TRUE(ledger) << ledger.error().message;
  EXPECT_EQ(ledger->load(kNow)->leases.size(), 1U);
}

TEST_F(LedgerFile, AKilledProcessLeavesWhatItSavedAndNothingElse) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto ledger = Ledger::open(path_);
    Changes changes;
    changes.leases = {sample_lease("burst-0", 1)};
    if (!ledger || !ledger->save(changes)) {
      _exit(1);
    }
    changes.leases = {sample_lease("burst-1", 1), sample_lease("burst-0", 2)};
    if (ledger->save(changes)) {
      _exit(2);
    }
    _exit(0);  // no destructor runs
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const Book book = reload();
  ASSERT_EQ(book.leases.size(), 1U);
  EXPECT_EQ(book.leases.begin()->second, sample_lease("burst-0", 1));
}

TEST_F(LedgerFile, WhatIsOldAndOverIsPruned) {
  {
    auto ledger = Ledger::open(path_);
    ASSERT_TRUE(ledger);
    Changes changes;
    changes.leases = {sample_lease("burst-0", 1), sample_lease("burst-1", 1)};
    changes.leases[0].state = LeaseState::gone;
    changes.leases[0].closed = kNow;
    changes.events = {{kNow, 7, "burst-0", "old"}, {kNow + std::chrono::hours(1), 7, "", "new"}};
    ASSERT_TRUE(ledger->save(changes));
    ASSERT_TRUE(ledger->prune(kNow + std::chrono::milliseconds(1)));
    EXPECT_EQ(ledger->events(0, 10)->size(), 1U);
  }
  const Book book = reload();
  ASSERT_EQ(book.leases.size(), 1U);
  EXPECT_EQ(book.leases.begin()->second.node, "burst-1");
  EXPECT_EQ(book.attempts.size(), 1U);
}

TEST(Book, TimesMoveWithTheClockButNotWhatTheCloudHasTold) {
  Book book;
  Changes changes;
  changes.leases = {sample_lease("burst-0", 1)};
  book.apply(changes);
  EXPECT_EQ(book.newest(), kNow);
  book.move_times(-std::chrono::hours(1));
  const Lease& lease = book.leases.begin()->second;
  EXPECT_EQ(book.newest(), kNow - std::chrono::hours(1));
  EXPECT_EQ(lease.next_try, kNow - std::chrono::hours(1) + std::chrono::milliseconds(1));
  EXPECT_EQ(lease.deadline, kNow - std::chrono::hours(1) + std::chrono::minutes(5));
  EXPECT_EQ(lease.idle, kNow - std::chrono::hours(1));
  EXPECT_EQ(lease.billed_from, kNow);
  EXPECT_EQ(lease.reclaim, kNow);
}

}  // namespace
}  // namespace acb::cloud

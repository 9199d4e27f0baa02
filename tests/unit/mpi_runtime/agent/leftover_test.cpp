// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/agent/leftover.h"

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "mpi_runtime/agent/agent.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>

namespace acb::train {
namespace {

std::string environment(const std::vector<std::string>& entries) {
  return join(entries, std::string_view("\0", 1));
}

TEST(BelongsTo, NeedsTheRunAndAStartUpToThatGiven) {
  struct Case {
    std::vector<std::string> entries;
    bool ours;
  };
  for (const Case& tried : {Case{{"A=1", "AUTOCLOUD_RUN=r1", "AUTOCLOUD_START=2"}, true},
                            Case{{"AUTOCLOUD_START=1", "AUTOCLOUD_RUN=r1", ""}, true},
                            Case{{"AUTOCLOUD_RUN=r1", "AUTOCLOUD_START=3"}, false},
                            Case{{"AUTOCLOUD_RUN=r1"}, false},
                            Case{{"AUTOCLOUD_RUN=r11", "AUTOCLOUD_START=1"}, false},
                            Case{{"X_AUTOCLOUD_RUN=r1", "AUTOCLOUD_START=1"}, false},
                            Case{{"AUTOCLOUD_RUN=r1", "AUTOCLOUD_START=x"}, false},
                            Case{{""}, false}}) {
    EXPECT_EQ(belongs_to(environment(tried.entries), "r1", 2), tried.ours)
        << testing::PrintToString(tried.entries);
  }
}

TEST(EndLeftovers, EndsAStoppedProcessOfTheRunAndNoOther) {
  const std::string run = "test-" + random_hex(8);
  const auto start = [&](const char* number) {
    return spawn({.arguments = {"sleep", "60"},
                  .environment = {{"AUTOCLOUD_RUN", run}, {"AUTOCLOUD_START", number}}})
        .value();
  };
  const pid_t old_rank = start("1");
  const pid_t new_rank = start("2");
  while (leftover_processes(run, 2).size() < 2) {  // until both have gone through exec
  }
  ::kill(old_rank, SIGSTOP);
  EXPECT_TRUE(end_leftovers(run, 1, std::chrono::seconds(5)));
  int status = 0;
  EXPECT_EQ(::waitpid(old_rank, &status, 0), old_rank);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(leftover_processes(run, 2), std::vector<pid_t>{new_rank});
  EXPECT_TRUE(end_leftovers(run, 2, std::chrono::seconds(5)));
  ::waitpid(new_rank, &status, 0);
}

TEST(RemoveDeadSegments, TakesOnlyOldSegmentsOfThisHostThatNobodyMaps) {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("segments-" + random_hex(8));
  std::filesystem::create_directory(root);
  const std::vector<std::string> names = {"vader_segment.here.0.1.0",  // dead
                                          "vader_segment.here.0.2.0",  // young
                                          "vader_segment.here.0.3.0",  // mapped
                                          "vader_segment.there.0.1.0",
                                          "vader_segment.hereafter.0.1.0",
                                          "other"};
  for (const std::string& name : names) {
    ASSERT_TRUE(write_file(root / name, "x"));
    if (name != names[1]) {
      std::filesystem::last_write_time(
          root / name, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
    }
  }
  const UniqueFd fd(::open((root / names[2]).c_str(), O_RDONLY));
  void* const mapped = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(remove_dead_segments(root, "here", std::chrono::seconds(30)), 1);
  EXPECT_FALSE(std::filesystem::exists(root / names[0]));
  for (std::size_t i = 1; i < names.size(); ++i) {
    EXPECT_TRUE(std::filesystem::exists(root / names[i])) << names[i];
  }
  ::munmap(mapped, 1);
  std::filesystem::remove_all(root);
}

TEST(NoticeLeft, ReadsTheDeadline) {
  const WallTime now = parse_time("now", "2026-01-31T12:00:00Z").value();
  EXPECT_EQ(notice_left(R"({"deadline":"2026-01-31T12:02:00Z"})", now)->count(), 120);
  EXPECT_EQ(notice_left(R"({"deadline":"2026-01-31T11:00:00Z"})", now)->count(), 0);
  for (const char* content : {"", "{}", "{\"deadline\":7}", "{\"deadl"}) {
    EXPECT_FALSE(notice_left(content, now)) << content;
  }
}

}  // namespace
}  // namespace acb::train

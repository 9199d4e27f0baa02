// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>

namespace acb {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/acb-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(Files, WriteReplacesAsAWholeAndLeavesNothingBeside) {
  const auto path = folder_ / "order";
  ASSERT_TRUE(write_file(path, "one", 0600));
  ASSERT_TRUE(write_file(path, "two", 0600));
  EXPECT_EQ(read_file(path).value(), "two");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(folder_), Entries()), 1);
}

TEST_F(Files, ErrorsSayWhatTheCallerCanDo) {
  EXPECT_EQ(read_file(folder_ / "absent").error().code, ErrorCode::not_found);
  EXPECT_EQ(write_file(folder_ / "no" / "folder", "x").error().code, ErrorCode::not_found);
  ASSERT_TRUE(write_file(folder_ / "large", std::string(100, 'x')));
  EXPECT_EQ(read_file(folder_ / "large", 10).error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace acb

// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace {
std::vector<std::string> synced;
}

// Stands before libc's, so that a test sees what is made durable.
extern "C" int fsync(int fd) {
  std::array<char, 4096> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (::readlink(link.c_str(), name.data(), name.size() - 1) > 0) {
    synced.emplace_back(name.data());
  }
  static auto* const next = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"));
  return next(fd);
}

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

TEST_F(Files, NewFoldersAreDurable) {
  synced.clear();
  ASSERT_TRUE(make_folders(folder_ / "a" / "b"));
  const std::filesystem::path at = std::filesystem::canonical(folder_);
  for (const auto& parent : {at, at / "a"}) {
    EXPECT_EQ(std::count(synced.begin(), synced.end(), parent.string()), 1) << parent;
  }
  synced.clear();
  ASSERT_TRUE(make_folders(folder_ / "a" / "b"));
  EXPECT_TRUE(synced.empty());
}

TEST_F(Files, ErrorsSayWhatTheCallerCanDo) {
  EXPECT_EQ(read_file(folder_ / "absent").error().code, ErrorCode::not_found);
  EXPECT_EQ(write_file(folder_ / "no" / "folder", "x").error().code, ErrorCode::not_found);
  ASSERT_TRUE(write_file(folder_ / "large", std::string(100, 'x')));
  EXPECT_EQ(read_file(folder_ / "large", 10).error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace acb

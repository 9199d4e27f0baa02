// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/agent/memory_folder.h"

#include "base/files.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace acb::train {
namespace {

namespace fs = std::filesystem;

class MemoryFolderTest : public testing::Test {
 protected:
  fs::path path_ = fs::temp_directory_path() / ("autocloud-test-" + random_hex(8));
  ~MemoryFolderTest() override { fs::remove_all(path_); }
};

TEST(MemoryFolderName, HoldsUserRunAndNode) {
  EXPECT_EQ(memory_folder(memory_prefix("/dev/shm", 1000, "42.1"), "own-0"),
            "/dev/shm/autocloud-1000-42.1-own-0");
}

TEST_F(MemoryFolderTest, IsPrivateAndGoesWithAllThatIsInIt) {
  {
    const auto folder = MemoryFolder::create(path_);
    ASSERT_TRUE(folder) << folder.error().message;
    struct stat status {};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
    ASSERT_TRUE(write_file(path_ / "step", "bytes"));
  }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(MemoryFolderTest, EmptiesWhatAnEarlierRunLeft) {
  ASSERT_TRUE(make_folders(path_));
  ASSERT_TRUE(write_file(path_ / "stale", "bytes"));
  const auto folder = MemoryFolder::create(path_);
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(MemoryFolderTest, RefusesAThingThatIsNoFolderOfOurs) {
  const fs::path target = path_.string() + "-target";
  ASSERT_TRUE(make_folders(target));
  fs::create_symlink(target, path_);
  const auto folder = MemoryFolder::create(path_);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::exists);
  fs::remove(target);
}

}  // namespace
}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/stored_job.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <fstream>
#include <string>

namespace acb::spank {
namespace {

using namespace std::string_literals;

TEST(StoredJob, IsABurstWhenItsEnvironmentSaysSo) {
  std::string name = ::testing::TempDir() + "state-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path state = name;
  struct Row {
    std::uint32_t id;
    std::string environment;
    bool burst;
  };
  const std::vector<Row> rows = {
      {12, "\2\0\0\0HOME=/root\0SLURM_SPANK_AUTOCLOUD_BURST=2\0"s, true},
      {13, "\1\0\0\0SLURM_SPANK_AUTOCLOUD_BURST=2\0"s, true},
      {14, "\1\0\0\0HOME=/root\0"s, false},
      {15, "\1\0\0\0COMMENT=SLURM_SPANK_AUTOCLOUD_BURST=2\0"s, false},
      {16, "", false},
  };
  for (const Row& row : rows) {
    const auto folder =
        state / ("hash." + std::to_string(row.id % 10)) / ("job." + std::to_string(row.id));
    ASSERT_TRUE(make_folders(folder));
    std::ofstream(folder / "environment", std::ios::binary) << row.environment;
    EXPECT_EQ(is_stored_burst(state, row.id), row.burst) << row.id;
  }
  EXPECT_FALSE(is_stored_burst(state, 99)) << "a job without a file";
  std::filesystem::remove_all(state);
}

}  // namespace
}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/report/run_lock.h"

#include "base/text.h"

#include <gmock/gmock.h>

#include <unistd.h>

namespace acb::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(MayPass, TheSameRunAndALaterStartOfTheSameJob) {
  struct Case {
    const char* holder;
    const char* run;
    bool passes;
  };
  for (const Case& c : {Case{"7.0-ab12", "7.0-ab12", true},
                        Case{"7.0-ab12", "7.1-cd34", true},
                        Case{"7.0-ab12", "7.0-cd34", false},
                        Case{"7.0-ab12", "71.0-ab12", false},
                        Case{"7.0-ab12", "local-cd34", false},
                        Case{"local-ab12", "local-ab12", true},
                        Case{"local-ab12", "local-cd34", false},
                        Case{"local-ab12", "7.0-ab12", false},
                        Case{"", "7.0-ab12", false}}) {
    EXPECT_EQ(may_pass(c.holder, c.run), c.passes) << c.holder << " before " << c.run;
  }
}

class RunFolder : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("acb-run-lock-" + random_hex(8));
};

TEST_F(RunFolder, IsOneRunsAtATimeAndItsHolderIsNamed) {
  {
    const auto held = lock_run_folder(folder_, "7.0-ab12");
    ASSERT_TRUE(held) << held.error().message;
    const auto other = lock_run_folder(folder_, "8.0-cd34");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::invalid);
    EXPECT_THAT(other.error().message,
                AllOf(HasSubstr(folder_.string()),
                      HasSubstr("job 7, process " + std::to_string(::getpid()) + " on ")));
    EXPECT_TRUE(lock_run_folder(folder_, "7.0-ab12"));
    // Whoever passes leaves the holder's name alone.
    EXPECT_FALSE(lock_run_folder(folder_, "8.0-cd34"));
  }
  EXPECT_TRUE(lock_run_folder(folder_, "local-cd34"));
}

TEST_F(RunFolder, WithoutAHolderThatCanBeReadKeepsEverybodyElseOut) {
  const auto held = lock_run_folder(folder_, "7.0-ab12");
  ASSERT_TRUE(held);
  ASSERT_EQ(::truncate((folder_ / "lock").c_str(), 0), 0);
  EXPECT_EQ(lock_run_folder(folder_, "7.0-ab12").error().code, ErrorCode::invalid);
}

TEST_F(RunFolder, ThatCannotBeMadeIsNamed) {
  const auto none = lock_run_folder("/proc/none/run", "7.0-ab12");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace acb::train

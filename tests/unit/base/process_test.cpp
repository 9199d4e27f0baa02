// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <gtest/gtest.h>

#include <csignal>

namespace acb {
namespace {

using std::chrono::milliseconds;

TEST(RunProcess, ReturnsOutputAndExitCode) {
  const auto finished = run_process({.arguments = {"sh", "-c", "echo $WORD; echo err >&2; exit 3"},
                                     .environment = {{"WORD", "hello"}}},
                                    milliseconds(5000));
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->exit_code, 3);
  EXPECT_EQ(finished->output, "hello\nerr\n");
}

TEST(RunProcess, KillsWhatOutlivesItsLimit) {
  const auto finished = run_process({.arguments = {"sleep", "60"}}, milliseconds(20));
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, ErrorCode::timeout);
}

TEST(RunProcess, AChildBlocksNoSignalItsParentBlocks) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto finished =
      run_process({.arguments = {"sh", "-c", "kill -TERM $$; sleep 5"}}, milliseconds(4000));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->exit_code, 128 + SIGTERM);
}

TEST(RunProcess, NamesAProgramThatIsNotThere) {
  const auto finished = run_process({.arguments = {"/no/such/program"}}, milliseconds(1000));
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, ErrorCode::not_found);
  EXPECT_NE(finished.error().message.find("/no/such/program"), std::string::npos);
}

}  // namespace
}  // namespace acb

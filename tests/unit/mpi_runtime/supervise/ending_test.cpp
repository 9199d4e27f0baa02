// SPDX-License-Identifier: Apache-2.0
// How runs come to their end before all is done: signals, the time limit, notices, too few nodes.
#include "tests/unit/mpi_runtime/supervise/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace acb::train {
namespace {

TEST(Termination, SavesThenRequeues) {
  Script run({"a", "b"});
  run.up_and_training(3);
  run.give(Terminate{"SIGTERM", true});
  EXPECT_EQ(run.count<TellSaveAndExit>(), 1U);
  EXPECT_EQ(run.count<AskRequeue>(), 0U);
  run.give(RankGone{1, 0});
  run.give(RankGone{1, 1});
  run.give(MpirunEnded{0});
  run.pass(0.2);
  EXPECT_EQ(run.exit_code(), kExitRequeued);
  EXPECT_EQ(run.count<KillMpirun>(), 0U);
}

TEST(Termination, RequeuesAlsoWhenRanksDoNotSaveInTime) {
  Script run({"a", "b"});
  run.up_and_training(3);
  run.give(Terminate{"SIGTERM", true});
  run.pass(26);
  EXPECT_EQ(run.count<KillMpirun>(), 1U);
  EXPECT_EQ(run.exit_code(), kExitRequeued);
}

TEST(Termination, FailsWhereNoRequeueIsWantedOrGranted) {
  struct Case {
    std::string unwanted;
    RequeueAnswer answer;
    const char* said;
  };
  using Kind = RequeueAnswer::Kind;
  for (const Case& tried :
       {Case{"not requeued, as asked", {}, "not requeued, as asked"},
        Case{"", {Kind::refused, "job 42 was cancelled"}, "job 42 was cancelled"}}) {
    Policy policy;
    policy.no_requeue = tried.unwanted;
    Script run({"a"}, policy);
    run.requeue_answer = tried.answer;
    run.up_and_training(3);
    run.give(Terminate{"SIGTERM", true});
    run.give(MpirunEnded{0});
    run.pass(0.2);
    EXPECT_EQ(run.exit_code(), kExitFailed);
    EXPECT_THAT(run.said(), testing::HasSubstr(tried.said));
  }
}

TEST(Requeue, IsLoggedBeforeItIsAskedFor) {
  Script run({"a"});
  run.up_and_training(3);
  run.give(Terminate{"SIGTERM", true});
  run.give(MpirunEnded{0});
  EXPECT_EQ(run.last_event("requeue")["step"], 3);
  EXPECT_LT(run.place_of<Log>("requeue"), run.place_of<AskRequeue>());
  EXPECT_FALSE(run.exit_code()) << "Slurm has not answered";
}

TEST(Requeue, IsAskedForAgainWhileSlurmDoesNotAnswer) {
  Script run({"a"});
  run.requeue_answer = {RequeueAnswer::Kind::unheard, "connect failure"};
  run.up_and_training(3);
  run.give(Terminate{"SIGTERM", true});
  run.give(MpirunEnded{0});
  run.pass(9);
  EXPECT_FALSE(run.exit_code());
  EXPECT_EQ(run.count<AskRequeue>(), 5U) << "at once, then every 2 s";
  run.requeue_answer = {};
  run.pass(2.2);
  EXPECT_EQ(run.exit_code(), kExitRequeued);
  EXPECT_EQ(run.count_events("requeue"), 1U);
}

TEST(Requeue, IsGivenUpWhereSlurmNeverAnswers) {
  Script run({"a"});
  run.requeue_answer = {RequeueAnswer::Kind::unheard, "connect failure"};
  run.up_and_training(3);
  run.give(Terminate{"SIGTERM", true});
  run.give(MpirunEnded{0});
  run.pass(125);
  EXPECT_EQ(run.exit_code(), kExitFailed);
  EXPECT_THAT(run.said(), testing::HasSubstr("not requeued: connect failure"));
}

TEST(Requeue, IsAskedForWhereNoNodeIsLeft) {
  for (const char* unwanted : {"", "not requeued: this is no Slurm job"}) {
    Policy policy;
    policy.no_requeue = unwanted;
    Script run({"a", "b"}, policy);
    run.up_and_training(3);
    run.kill_node("a");
    run.kill_node("b");
    run.pass(8);
    EXPECT_EQ(run.exit_code(), policy.no_requeue.empty() ? kExitRequeued : kExitFailed);
    EXPECT_EQ(run.count<AskRequeue>(), policy.no_requeue.empty() ? 1U : 0U);
    EXPECT_THAT(run.said(), testing::HasSubstr("no node is left"));
  }
}

TEST(Termination, BeforeTrainingRequeuesAtOnce) {
  Script run({"a", "b"});
  run.give(AgentHeard{"a"});
  run.give(Terminate{"SIGTERM", true});
  run.pass(0.2);
  EXPECT_EQ(run.exit_code(), kExitRequeued);
  EXPECT_EQ(run.count<StartMpirun>(), 0U);
}

TEST(TimeLimit, IsAnsweredAMarginBefore) {
  Script run({"a"});
  run.give(TimeLeft{Seconds(200)});
  run.up_and_training(3);
  run.pass(175);
  EXPECT_EQ(run.count<AskTimeLeft>(), 0U);
  run.pass(10);
  EXPECT_EQ(run.count<AskTimeLeft>(), 1U) << "the limit may have been moved";
  EXPECT_EQ(run.count<TellSaveAndExit>(), 1U);
  EXPECT_EQ(run.last_event("save-and-exit")["reason"], "time limit");
}

TEST(TimeLimit, MovesWithItsOwner) {
  Script run({"a"});
  run.give(TimeLeft{Seconds(100)});
  run.up_and_training(3);
  run.pass(80.2);
  EXPECT_EQ(run.count<AskTimeLeft>(), 1U);
  run.give(TimeLeft{Seconds(500)});
  run.pass(100);
  EXPECT_EQ(run.count<TellSaveAndExit>(), 0U);
}

TEST(TimeLimit, IsKeptWhereSlurmDoesNotSay) {
  Script run({"a"});
  run.give(TimeLeft{Seconds(60)});
  run.give(TimeUnsaid{});
  run.up_and_training(3);
  run.pass(10);
  EXPECT_EQ(run.count<AskTimeLeft>(), 1U) << "asked again";
  run.give(TimeUnsaid{});
  run.pass(40);
  EXPECT_EQ(run.last_event("save-and-exit")["reason"], "time limit");
}

TEST(TimeLimit, IsAskedForUntilSlurmSays) {
  Script run({"a"});
  run.up_and_training(3);
  for (std::size_t i = 0; i < 5; ++i) {
    run.give(TimeUnsaid{});
    run.pass(10.2);
    EXPECT_EQ(run.count<AskTimeLeft>(), i + 1);
  }
  run.give(TimeLeft{Seconds(4)});
  run.pass(5);
  EXPECT_EQ(run.count<TellSaveAndExit>(), 1U);
}

TEST(TimeLimit, IsNoneOnlyOnceSlurmSaysSo) {
  Script run({"a"});
  run.give(TimeLeft{Seconds(60)});
  run.give(TimeLeft{std::nullopt});
  run.up_and_training(3);
  run.pass(100);
  EXPECT_EQ(run.count<AskTimeLeft>() + run.count<TellSaveAndExit>(), 0U);
}

TEST(TimeLimit, MarginFollowsWhatWasMeasured) {
  State state;
  state.limit_at_first = Seconds(10'000);
  EXPECT_EQ(save_margin(state), Seconds(20));
  state.longest_save = Seconds(30);
  state.longest_step = Seconds(5);
  EXPECT_EQ(save_margin(state), Seconds(80));
  state.limit_at_first = Seconds(60);
  EXPECT_EQ(save_margin(state), Seconds(15)) << "most of a short job is for training";
}

TEST(Notice, SavesAndGoesOnWithoutTheNode) {
  Script run(kFour);
  run.up_and_training(3);
  run.give(ReclaimNotice{"b-1", Seconds(60)});
  EXPECT_EQ(run.count<TellSaveAndExit>(), 1U);
  run.give(MpirunEnded{0});
  run.pass(1);
  EXPECT_EQ(run.started().back(), (Names{"own-0", "own-1", "b-0"}));
  EXPECT_FALSE(run.exit_code());
}

TEST(Notice, BeforeTheStartLeavesTheNodeOut) {
  Script run(kFour);
  run.give(AgentHeard{"b-1"});
  run.give(ReclaimNotice{"b-1", Seconds(60)});
  run.agents_join();
  EXPECT_EQ(run.started().back(), (Names{"own-0", "own-1", "b-0"}));
  EXPECT_EQ(run.last_event("lost")["why"], "reclaimed");
}

TEST(Notice, ForEveryNodeBeforeTheStartRequeues) {
  Script run({"b-0"});
  run.give(ReclaimNotice{"b-0", Seconds(60)});
  run.agents_join();
  run.pass(0.2);
  EXPECT_EQ(run.count<StartMpirun>(), 0U);
  EXPECT_EQ(run.exit_code(), kExitRequeued);
}

TEST(Notice, WhileRanksStartIsToldThemOnceTheyAreThere) {
  Script run({"a", "b"});
  run.agents_join();
  run.give(ReclaimNotice{"b", Seconds(60)});
  EXPECT_EQ(run.count<TellSaveAndExit>(), 1U);
  run.pass(3);
  run.ranks_join();
  EXPECT_EQ(run.count<TellSaveAndExit>(), 2U);
  EXPECT_NEAR(run.last_event("save-and-exit")["deadline_s"].get<double>(), 52, 0.2);
}

TEST(Loss, OfAnMpirunThatCannotBeKilledRequeues) {
  Script run({"a", "b"});
  run.mpirun_ends_when_killed = false;
  run.up_and_training(3);
  run.silence_rank(0);
  run.pass(40);
  EXPECT_EQ(run.started().size(), 1U);
  EXPECT_EQ(run.exit_code(), kExitRequeued);
  EXPECT_THAT(run.said(), testing::HasSubstr("mpirun does not end"));
}

TEST(MinNodes, RequeuesInsteadOfGoingOnTooSmall) {
  Policy policy;
  policy.min_nodes = 4;
  Script run(kFour, policy);
  run.up_and_training(3);
  run.kill_node("b-1");
  run.pass(8);
  EXPECT_EQ(run.exit_code(), kExitRequeued);
  EXPECT_EQ(run.started().size(), 1U);
}

}  // namespace
}  // namespace acb::train

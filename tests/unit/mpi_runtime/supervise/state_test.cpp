// SPDX-License-Identifier: Apache-2.0
// Whole runs through step(), on a clock of their own.
#include "tests/unit/mpi_runtime/supervise/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace acb::train {
namespace {

using testing::ElementsAre;

TEST(Supervision, StartsOnceEveryAgentIsHeard) {
  Script run(kFour);
  for (const char* name : {"own-0", "b-1", "own-1"}) {
    run.give(AgentHeard{name});
  }
  EXPECT_EQ(run.count<StartMpirun>(), 0U);
  run.give(AgentHeard{"b-0"});
  EXPECT_THAT(run.started(), ElementsAre(kFour));
}

TEST(Supervision, StartsWithoutANodeWhoseAgentDoesNotCome) {
  Script run(kFour);
  run.kill_node("b-0");
  run.pass(29);
  EXPECT_EQ(run.count<StartMpirun>(), 0U);
  run.pass(2);
  EXPECT_THAT(run.started(), ElementsAre(Names{"own-0", "own-1", "b-1"}));
  EXPECT_EQ(run.last_event("lost")["node"], "b-0");
}

TEST(Supervision, IsDoneWhenEveryRankSaysSoAndMpirunEnds) {
  Script run({"a", "b"});
  run.up_and_training(5);
  run.give(RankDone{1, 0, 5});
  EXPECT_FALSE(run.exit_code());
  run.give(RankDone{1, 1, 5});
  EXPECT_EQ(run.count<ConfirmDone>(), 2U);
  EXPECT_FALSE(run.exit_code()) << "mpirun still runs";
  run.give(MpirunEnded{1});
  EXPECT_EQ(run.exit_code(), kExitDone) << "whatever mpirun's exit code";
}

TEST(Supervision, KillsAnMpirunThatDoesNotEndAfterDone) {
  Script run({"a"});
  run.up_and_training(2);
  run.all_done();
  run.pass(11);
  EXPECT_EQ(run.count<KillMpirun>(), 1U);
  EXPECT_EQ(run.exit_code(), kExitDone);
}

TEST(Supervision, GoesOnWithoutALostNodeInTime) {
  Script run(kFour);
  run.up_and_training(10);
  const double cut_at = run.now_s();
  run.kill_node("b-0");
  while (run.started().size() < 2 && run.now_s() < cut_at + 20) {
    run.pass(0.1);
  }
  EXPECT_LE(run.now_s() - cut_at, 3.0 + 1.5 + 0.5);
  EXPECT_EQ(run.started().back(), (Names{"own-0", "own-1", "b-1"}));
  EXPECT_EQ(run.last_event("lost")["node"], "b-0");
  EXPECT_THAT(run.said(), testing::HasSubstr("node b-0 lost (silent for 3."));
  EXPECT_THAT(run.said(), testing::HasSubstr("restarting on 3 nodes"));

  run.ranks_join();
  run.give(RankStep{2, 0, 10, 1.0});
  EXPECT_EQ(run.last_event("training")["redone"], 1);
  EXPECT_THAT(run.said(), testing::HasSubstr("step 10 (1 step redone)"));
}

TEST(Supervision, AllowsForLongerSilencesAlsoAfterALoss) {
  Policy policy;
  policy.silence = Seconds(20);
  Script run({"n1", "n2"}, policy);
  run.up_and_training(3);
  run.kill_node("n1");  // it is slow, no more
  run.give(RankGone{1, 1});
  run.give(MpirunEnded{1});
  run.pass(9);
  run.give(AgentClear{"n1", 1});
  EXPECT_EQ(run.started().back(), (Names{"n1", "n2"}));
  EXPECT_EQ(run.count_events("lost"), 0U);
}

TEST(Supervision, TellsWhatWasLostAndWhatWentWithItApart) {
  Script run({"n1", "n2", "n3"});
  run.up_and_training(3);
  run.kill_node("n1");
  run.give(RankGone{1, 1});
  run.give(MpirunEnded{1});
  run.pass(4);
  EXPECT_THAT(run.said(),
              testing::HasSubstr("rank 1 on n2 lost (it ended without being done), without n1 "
                                 "(silent); restarting on 2 nodes"));
}

TEST(Supervision, LosesSeveralNodesAtOnce) {
  Script run(kFour);
  run.up_and_training(3);
  run.kill_node("b-0");
  run.kill_node("b-1");
  run.pass(8);
  EXPECT_EQ(run.started().back(), (Names{"own-0", "own-1"}));
  EXPECT_EQ(run.started().size(), 2U);
}

TEST(Supervision, ARankLostOnALivingNodeCostsNoNode) {
  Script run(kFour);
  run.up_and_training(3);
  run.silence_rank(2);
  run.pass(6);
  EXPECT_EQ(run.started().back(), kFour);
  EXPECT_EQ(run.started().size(), 2U);
  EXPECT_TRUE(run.last_event("lost").is_null());
  EXPECT_THAT(run.said(), testing::HasSubstr("rank 2 on b-0 lost"));
}

TEST(Supervision, TakesItsOwnPauseForNobodysSilence) {
  Script run(kFour);
  run.up_and_training(3);
  for (int i = 0; i < 3; ++i) {
    run.stall(60);
    run.pass(2);
  }
  EXPECT_EQ(run.started().size(), 1U);
  run.kill_node("b-0");
  run.silence_rank(1);
  run.give(RankGone{1, 2});
  run.pass(2.5);
  ASSERT_EQ(run.state().phase, Phase::judging);
  run.stall(60);
  run.pass(4);
  EXPECT_EQ(run.started().size(), 2U);
  EXPECT_EQ(run.started().back(), (Names{"own-0", "own-1", "b-1"}))
      << "only what is silent is lost";
}

TEST(Supervision, NoticesALossAlsoWhereEachOfItsTurnsIsSlow) {
  Script run(kFour);
  run.up_and_training(3);
  run.kill_node("b-0");
  for (int i = 0; i < 20 && run.started().size() < 2; ++i) {
    run.stall(2);
    run.pass(0.1);
  }
  EXPECT_EQ(run.started().size(), 2U);
  EXPECT_EQ(run.last_event("lost")["node"], "b-0");
}

TEST(Supervision, NeverStartsBeforeTheOldMpirunHasEnded) {
  Script run(kFour);
  run.mpirun_ends_when_killed = false;
  run.up_and_training(3);
  run.silence_rank(0);
  run.pass(20);
  EXPECT_EQ(run.started().size(), 1U);
  run.give(MpirunEnded{137});
  EXPECT_EQ(run.started().size(), 2U);
}

TEST(Supervision, LeavesOutANodeThatSlurmHasTaken) {
  Script run(kFour);
  run.slurm_says = Names{"own-0", "own-1", "b-1"};
  run.up_and_training(3);
  run.silence_rank(2);
  run.pass(6);
  EXPECT_EQ(run.started().back(), (Names{"own-0", "own-1", "b-1"}));
}

TEST(Supervision, AnExitCodeOfZeroWithoutDoneIsALoss) {
  Script run(kFour);
  run.up_and_training(3);
  run.give(MpirunEnded{0});
  run.pass(1);
  EXPECT_FALSE(run.exit_code());
  EXPECT_EQ(run.started().size(), 2U);
}

TEST(Supervision, DoesNotRepeatALineThatEndsWellOrCannotRunBeforeAnyRankReports) {
  for (const int code : {0, 126, 127}) {
    Script run({"a", "b"});
    run.agents_join();
    run.give(MpirunEnded{code});
    run.pass(1);
    EXPECT_EQ(run.exit_code(), kExitFailed);
    EXPECT_EQ(run.started().size(), 1U);
    EXPECT_THAT(run.said(), testing::HasSubstr("before any rank reported"));
  }
}

TEST(Supervision, RepeatsALineThatEndedWellWithItsNode) {
  Script run({"a", "b"});
  run.agents_join();
  run.kill_node("b");
  run.give(MpirunEnded{0});
  run.pass(8);
  EXPECT_FALSE(run.exit_code());
  EXPECT_EQ(run.started().back(), Names{"a"});
}

TEST(Supervision, WaitsForMpirunsWordAboutARankThatEnded) {
  Script run({"a", "b"});
  run.up_and_training(3);
  run.give(RankGone{1, 1});
  run.pass(1);
  EXPECT_EQ(run.count<KillMpirun>(), 0U);
  run.give(MpirunEnded{7});
  run.pass(1);
  EXPECT_EQ(run.started().size(), 2U);
  EXPECT_EQ(run.last_event("loss")["what"], "rank 1 on b");
}

TEST(Supervision, GivesUpAfterThreeStartsWithoutANewStep) {
  Script run({"a", "b"});
  run.up_and_training(3);
  for (int crash = 0; crash < 10 && !run.exit_code(); ++crash) {
    run.give(MpirunEnded{7});
    run.pass(1);
    if (!run.exit_code()) {
      run.ranks_join();
      run.give(RankStep{run.state().start, 0, 3, 1.0});
    }
  }
  EXPECT_EQ(run.exit_code(), kExitNoProgress);
  EXPECT_EQ(run.started().size(), 4U) << "one that trained and three that did not";
  EXPECT_THAT(run.said(), testing::HasSubstr("exit code 7"));
}

TEST(Supervision, ARankThatGivesUpEndsTheRunAtOnceWithItsReason) {
  Script run({"a", "b"});
  run.up_and_training(3);
  run.give(RankGaveUp{1, 1, "other settings"});
  EXPECT_EQ(run.exit_code(), kExitFailed);
  EXPECT_EQ(run.started().size(), 1U);
  EXPECT_EQ(run.last_event("fail")["why"], "other settings");
}

TEST(Supervision, ProgressAndLostNodesDoNotCountTowardsGivingUp) {
  Script run(kFour);
  run.up_and_training(3);
  for (std::int64_t crash = 1; crash <= 6; ++crash) {
    run.give(MpirunEnded{7});
    run.pass(1);
    run.ranks_join();
    run.give(RankStep{run.state().start, 0, 3 + crash, 1.0});
  }
  for (const char* name : {"b-1", "b-0", "own-1"}) {
    run.kill_node(name);
    run.pass(8);
    run.ranks_join();
  }
  EXPECT_FALSE(run.exit_code());
  EXPECT_EQ(run.started().back(), Names{"own-0"});
}

TEST(Supervision, EndsAStartOnWhichRanksStayUnheard) {
  Script run({"a", "b"});
  run.agents_join();
  run.pass(119);
  EXPECT_EQ(run.started().size(), 1U);
  run.pass(4);
  EXPECT_EQ(run.started().size(), 2U);
  EXPECT_THAT(run.said(), testing::HasSubstr("only 0 ranks reported within 120 s"));
}

TEST(Supervision, IgnoresRanksOfAnEarlierStart) {
  Script run({"a", "b"});
  run.up_and_training(3);
  run.give(MpirunEnded{1});
  run.pass(1);
  run.ranks_join();
  run.give(RankDone{1, 0, 3});
  run.give(RankDone{1, 1, 3});
  run.give(RankGone{1, 0});
  run.give(MpirunEnded{0});
  EXPECT_NE(run.exit_code(), kExitDone);
}

}  // namespace
}  // namespace acb::train

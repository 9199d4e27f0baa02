// SPDX-License-Identifier: Apache-2.0
// Whole runs through step(), on a clock of their own.
#include "mpi_runtime/supervise/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace acb::train {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

class Script {
 public:
  explicit Script(Names nodes, Policy policy = {}) : names_(std::move(nodes)) {
    state_ = begin(policy, names_, now_);
    living_.insert(names_.begin(), names_.end());
  }

  void give(const Event& event) {
    for (Action& action : step(state_, event, now_)) {
      react(action);
      all_.push_back(std::move(action));
    }
  }
  /// Lets time pass in ticks; what lives is heard, and answers as it would.
  void pass(double seconds) {
    for (double gone = 0; gone < seconds && state_.phase != Phase::ended; gone += 0.1) {
      now_ += std::chrono::milliseconds(100);
      beat();
      give(Tick{});
      answer();
    }
  }
  void agents_join() {
    for (const std::string& name : names_) {
      if (living_.contains(name)) {
        give(AgentHeard{name});
      }
    }
  }
  /// One rank per node of the newest start.
  void ranks_join() {
    const Names nodes = started().back();
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      give(RankJoined{
          state_.start, static_cast<int>(rank), static_cast<int>(nodes.size()), nodes[rank]});
      rank_nodes_[static_cast<int>(rank)] = nodes[rank];
    }
  }
  void train_to(std::int64_t last) {
    for (std::int64_t number = state_.step_of_start + 1; number <= last; ++number) {
      pass(0.1);
      give(RankStep{state_.start, 0, number, 1.0});
    }
  }
  void all_done() {
    for (const auto& [rank, node] : rank_nodes_) {
      give(RankDone{state_.start, rank, state_.step_of_start});
    }
  }
  void kill_node(const std::string& name) { living_.erase(name); }
  void silence_rank(int rank) { silent_ranks_.insert(rank); }
  void up_and_training(std::int64_t last) {
    agents_join();
    ranks_join();
    train_to(last);
  }

  [[nodiscard]] std::vector<Names> started() const {
    std::vector<Names> found;
    for (const Action& action : all_) {
      if (const auto* start = std::get_if<StartMpirun>(&action)) {
        found.push_back(start->nodes);
      }
    }
    return found;
  }
  template <typename Kind>
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [](const auto& action) {
      return std::holds_alternative<Kind>(action);
    }));
  }
  [[nodiscard]] std::optional<int> exit_code() const {
    const auto* last = all_.empty() ? nullptr : std::get_if<Finish>(&all_.back());
    return last == nullptr ? std::nullopt : std::optional(last->exit_code);
  }
  [[nodiscard]] Json last_event(const std::string& name) const {
    Json found;
    for (const Action& action : all_) {
      if (const auto* log = std::get_if<Log>(&action);
          log != nullptr && log->event["event"] == name) {
        found = log->event;
      }
    }
    return found;
  }
  [[nodiscard]] std::string said() const {
    std::string text;
    for (const Action& action : all_) {
      if (const auto* say = std::get_if<Say>(&action)) {
        text += say->text + "\n";
      }
    }
    return text;
  }
  [[nodiscard]] const State& state() const { return state_; }

  bool mpirun_ends_when_killed = true;
  std::optional<Names> slurm_says;
  RequeueAnswer requeue_answer{true, ""};
  double now_s() const { return Seconds(now_ - Time{}).count(); }

 private:
  void react(const Action& action) {
    if (std::holds_alternative<KillMpirun>(action) && mpirun_ends_when_killed) {
      answers_.push_back(MpirunEnded{137});
    } else if (const auto* clear = std::get_if<ClearNodes>(&action)) {
      for (const std::string& name : living_) {
        answers_.push_back(AgentClear{name, clear->start});
      }
    } else if (std::holds_alternative<AskSlurmNodes>(action)) {
      answers_.push_back(SlurmNodes{slurm_says});
    } else if (std::holds_alternative<AskRequeue>(action)) {
      answers_.push_back(requeue_answer);
    } else if (std::holds_alternative<StartMpirun>(action)) {
      rank_nodes_.clear();
      silent_ranks_.clear();
    }
  }
  void beat() {
    for (const std::string& name : living_) {
      give(AgentHeard{name});
    }
    for (const auto& [rank, node] : rank_nodes_) {
      if (living_.contains(node) && !silent_ranks_.contains(rank)) {
        give(RankHeard{state_.start, rank});
      }
    }
  }
  void answer() {
    std::vector<Event> answers;
    answers.swap(answers_);
    for (const Event& event : answers) {
      give(event);
    }
  }

  Time now_{std::chrono::hours(1)};
  Names names_;
  std::set<std::string> living_;
  std::map<int, std::string> rank_nodes_;
  std::set<int> silent_ranks_;
  std::vector<Event> answers_;
  State state_;
  std::vector<Action> all_;
};

const Names kFour = {"own-0", "own-1", "b-0", "b-1"};

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
    bool wanted;
    RequeueAnswer answer;
    const char* said;
  };
  for (const Case& tried : {Case{false, {true, ""}, "not requeued, as asked"},
                            Case{true, {false, "job 42 was cancelled"}, "job 42 was cancelled"}}) {
    Policy policy;
    policy.requeue = tried.wanted;
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

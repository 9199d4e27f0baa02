// SPDX-License-Identifier: Apache-2.0
// A whole run through step(), on a clock of its own: what lives is heard, and answers as it would.
#pragma once

#include "mpi_runtime/supervise/state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace acb::train {

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
  /// The supervisor hangs, then looks at the clock before it hears anyone.
  void stall(double seconds) {
    now_ += std::chrono::duration_cast<Time::duration>(Seconds(seconds));
    give(Tick{});
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
  [[nodiscard]] std::size_t count_events(const std::string& name) const {
    return static_cast<std::size_t>(std::count_if(
        all_.begin(), all_.end(), [&](const Action& action) { return is_event(action, name); }));
  }
  /// Which of all actions the first of this kind was; of a Log, the first event of this name.
  template <typename Kind>
  [[nodiscard]] std::ptrdiff_t place_of(const std::string& name = "") const {
    return std::find_if(all_.begin(),
                        all_.end(),
                        [&](const Action& action) {
                          return std::holds_alternative<Kind>(action) &&
                                 (name.empty() || is_event(action, name));
                        }) -
           all_.begin();
  }
  [[nodiscard]] std::optional<int> exit_code() const {
    const auto* last = all_.empty() ? nullptr : std::get_if<Finish>(&all_.back());
    return last == nullptr ? std::nullopt : std::optional(last->exit_code);
  }
  [[nodiscard]] Json last_event(const std::string& name) const {
    Json found;
    for (const Action& action : all_) {
      if (is_event(action, name)) {
        found = std::get<Log>(action).event;
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
  RequeueAnswer requeue_answer;
  double now_s() const { return Seconds(now_ - Time{}).count(); }

 private:
  [[nodiscard]] static bool is_event(const Action& action, const std::string& name) {
    const auto* log = std::get_if<Log>(&action);
    return log != nullptr && log->event["event"] == name;
  }
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

inline const Names kFour = {"own-0", "own-1", "b-0", "b-1"};

}  // namespace acb::train

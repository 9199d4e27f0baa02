// SPDX-License-Identifier: Apache-2.0
// The inside of step(): state.cpp holds what is heard, recover.cpp what is done about it.
#pragma once

#include "mpi_runtime/supervise/state.h"

#include <string>
#include <vector>

namespace acb::train {

inline Time plus(Time time, Seconds seconds) {
  return time + std::chrono::duration_cast<Time::duration>(seconds);
}
/// To a tenth of a second, as logged.
[[nodiscard]] double tenths(Seconds seconds);
/// "1 node", "2 nodes".
[[nodiscard]] std::string count_of(std::size_t count, const char* noun);

/// One call of step(): the state, the time, and the actions so far.
class Stepper {
 public:
  Stepper(State& state, Time now) : s_(state), now_(now) {}
  [[nodiscard]] Actions take() { return std::move(actions_); }

  void on(const AgentHeard& event);
  void on(const AgentClear& event);
  void on(const AgentGone& event);
  void on(const ReclaimNotice& event);
  void on(const RankJoined& event);
  void on(const RankHeard& event) { hear(event.start, event.rank); }
  void on(const RankStep& event);
  void on(const RankSaved& event);
  void on(const RankDone& event);
  void on(const RankGaveUp& event);
  void on(const RankGone& event);
  void on(const MpirunEnded& event);
  void on(const SlurmNodes& event);
  void on(const TimeLeft& event);
  void on(const TimeUnsaid&);
  void on(const Terminate& event);
  void on(const RequeueAnswer& event);
  void on(const Tick&);

 private:
  void act(Action action);
  void log(const char* name, Json fields) {
    fields["event"] = name;
    act(Log{std::move(fields)});
  }
  void say(std::string text) { act(Say{std::move(text)}); }
  void enter(Phase phase) {
    s_.phase = phase;
    s_.phase_since = now_;
  }
  [[nodiscard]] Seconds in_phase() const { return now_ - s_.phase_since; }
  [[nodiscard]] bool training() const {
    return s_.phase == Phase::running || s_.phase == Phase::finishing || s_.phase == Phase::saving;
  }

  RankView* hear(int start, int rank);
  [[nodiscard]] std::vector<std::string> usable_nodes() const;
  [[nodiscard]] std::size_t ranks_that(bool RankView::*what) const;
  void drop_node(const std::string& name, const std::string& why, Seconds silent);
  void gather();
  void launch(const std::vector<std::string>& nodes);
  [[nodiscard]] Loss loss_of_mpirun(int exit_code) const;
  void lose(Loss loss);
  void look_for_silence();
  void watch_limit();
  void ask_again();
  void pass_over_own_pause();
  [[nodiscard]] Seconds settle() const;
  [[nodiscard]] bool waits_for_node(const std::string& name, const NodeView& node);
  void judge();
  void restart_on(const std::vector<std::string>& nodes, const std::vector<std::string>& lost);
  [[nodiscard]] bool is_hopeless() const;
  [[nodiscard]] bool gives_up(bool same_nodes);
  void save_and_exit(const std::string& reason, Seconds left);
  void tell_to_save();
  void end_saving();
  void request_requeue();
  void finish(int exit_code);
  void fail_run(int exit_code, const std::string& why);
  void note_new_step(const RankStep& event);
  void note_training_again(std::int64_t step);

  State& s_;
  Time now_;
  Actions actions_;
};

}  // namespace acb::train

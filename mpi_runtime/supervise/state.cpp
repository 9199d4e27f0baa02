// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/supervise/state.h"

#include "mpi_runtime/supervise/stepper.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace acb::train {

RankView* Stepper::hear(int start, int rank) {
  const auto found = s_.ranks.find(rank);
  if (start != s_.start || found == s_.ranks.end()) {
    return nullptr;
  }
  found->second.heard = now_;
  return &found->second;
}

std::size_t Stepper::ranks_that(bool RankView::*what) const {
  return static_cast<std::size_t>(std::count_if(
      s_.ranks.begin(), s_.ranks.end(), [&](const auto& entry) { return entry.second.*what; }));
}

void Stepper::on(const AgentHeard& event) {
  const auto found = s_.nodes.find(event.node);
  if (found == s_.nodes.end()) {
    return;
  }
  found->second.heard = now_;
  if (!found->second.joined) {
    found->second.joined = true;
    log("agent", {{"node", event.node}});
  }
  gather();
}

void Stepper::on(const AgentClear& event) {
  const auto found = s_.nodes.find(event.node);
  if (found == s_.nodes.end()) {
    return;
  }
  found->second.heard = now_;
  if (s_.phase == Phase::judging && event.start == s_.start) {
    found->second.clear = true;
    judge();
  }
}

void Stepper::on(const AgentGone& event) {
  const auto found = s_.nodes.find(event.node);
  if (found == s_.nodes.end() || found->second.lost || s_.phase == Phase::ended) {
    return;
  }
  const Time heard = found->second.heard;
  drop_node(event.node, "its agent ended", now_ - heard);
  if (s_.phase == Phase::running || s_.phase == Phase::saving) {
    lose({heard, "node " + event.node, "its agent ended"});
  } else if (s_.phase == Phase::judging) {
    judge();
  } else {
    gather();
  }
}

void Stepper::on(const ReclaimNotice& event) {
  const auto found = s_.nodes.find(event.node);
  if (found == s_.nodes.end() || found->second.leaving || found->second.lost) {
    return;
  }
  found->second.leaving = true;
  log("notice", {{"node", event.node}, {"left_s", tenths(event.left)}});
  say(fmt::format("node {} will be reclaimed in {:.0f} s", event.node, event.left.count()));
  if (s_.phase == Phase::running) {
    s_.ending_restarts = true;
    // A quarter of the notice stays for the restart, at most 5 s.
    save_and_exit("reclaim of " + event.node,
                  event.left - std::min<Seconds>(event.left / 4, Seconds(5)));
  }
}

void Stepper::on(const RankJoined& event) {
  if (event.start != s_.start || !training()) {
    return;
  }
  s_.size = event.size;
  s_.ranks[event.rank] = {event.node, false, false, now_};
  if (static_cast<int>(s_.ranks.size()) == s_.size) {
    log("ranks", {{"start", s_.start}, {"ranks", s_.size}});
    if (s_.phase == Phase::saving) {
      tell_to_save();  // the order came before them
    }
  }
}

void Stepper::note_training_again(std::int64_t step) {
  const auto redone = std::max<std::int64_t>(0, s_.best_step - step + 1);
  const double after = tenths(now_ - s_.loss->began);
  log("training", {{"start", s_.start}, {"after_s", after}, {"step", step}, {"redone", redone}});
  say(fmt::format("training again after {:.1f} s, step {} ({} redone)",
                  after,
                  step,
                  count_of(static_cast<std::size_t>(redone), "step")));
  s_.loss.reset();
}

void Stepper::note_new_step(const RankStep& event) {
  if (s_.step_of_start == 0 && s_.loss) {
    note_training_again(event.step);
  }
  if (s_.step_of_start != 0) {
    s_.longest_step = std::max<Seconds>(s_.longest_step, now_ - s_.step_at);
  }
  s_.step_at = now_;
  s_.step_of_start = event.step;
  s_.best_step = std::max(s_.best_step, event.step);
  log("step", {{"step", event.step}, {"loss", event.loss}, {"start", s_.start}});
}

void Stepper::on(const RankStep& event) {
  if (hear(event.start, event.rank) != nullptr && training() && event.step > s_.step_of_start) {
    note_new_step(event);
  }
}

void Stepper::on(const RankSaved& event) {
  if (hear(event.start, event.rank) == nullptr) {
    return;
  }
  s_.longest_save = std::max(s_.longest_save, event.took);
  if (s_.saves.emplace(event.level, event.step).second) {
    log("save", {{"level", event.level}, {"step", event.step}, {"seconds", event.took.count()}});
  }
}

void Stepper::on(const RankDone& event) {
  RankView* rank = hear(event.start, event.rank);
  if (rank == nullptr) {
    return;
  }
  rank->done = true;
  act(ConfirmDone{event.rank});
  if (!training() || static_cast<int>(ranks_that(&RankView::done)) != s_.size) {
    return;
  }
  s_.best_step = std::max(s_.best_step, event.step);
  if (s_.mpirun_runs) {
    enter(Phase::finishing);
  } else {
    finish(kExitDone);
  }
}

void Stepper::on(const RankGaveUp& event) {
  if (hear(event.start, event.rank) == nullptr) {
    return;
  }
  act(ConfirmDone{event.rank});
  if (training()) {
    fail_run(kExitFailed, event.reason);
  }
}

void Stepper::on(const RankGone& event) {
  const auto found = s_.ranks.find(event.rank);
  if (event.start != s_.start || found == s_.ranks.end()) {
    return;
  }
  found->second.gone = true;
  if (s_.phase == Phase::running && !found->second.done && !s_.rank_end) {
    s_.rank_ended_at = now_;
    s_.rank_end = {found->second.heard,
                   fmt::format("rank {} on {}", event.rank, found->second.node),
                   "it ended without being done"};
  }
}

Loss Stepper::loss_of_mpirun(int exit_code) const {
  if (s_.rank_end) {
    Loss loss = *s_.rank_end;
    loss.program_exit = exit_code;
    return loss;
  }
  const char* before = s_.ranks.empty()
                           ? "any rank reported; ranks report through mpi_runtime/report"
                           : "all ranks were done";
  return {now_, "mpirun", fmt::format("it ended with {} before {}", exit_code, before), exit_code};
}

void Stepper::on(const MpirunEnded& event) {
  s_.mpirun_runs = false;
  switch (s_.phase) {
    case Phase::finishing:
      finish(kExitDone);
      break;
    case Phase::running:
      lose(loss_of_mpirun(event.exit_code));
      break;
    case Phase::saving:
      end_saving();
      break;
    case Phase::judging:
      judge();
      break;
    case Phase::gathering:
    case Phase::requeueing:
    case Phase::ended:
      break;
  }
}

void Stepper::on(const SlurmNodes& event) {
  s_.slurm_answered = true;
  s_.slurm_nodes = event.nodes;
  if (s_.phase == Phase::judging) {
    judge();
  }
}

void Stepper::on(const TimeLeft& event) {
  if (!event.left) {
    s_.limit.reset();
    return;
  }
  s_.limit = plus(now_, *event.left);
  if (s_.limit_at_first == Seconds(0)) {
    s_.limit_at_first = *event.left;
  }
  if (*event.left > save_margin(s_)) {
    s_.limit_asked = false;
  }
}

// What was known still holds.
void Stepper::on(const TimeUnsaid&) {
  s_.limit_ask_at = plus(now_, s_.policy.ask_limit);
}

void Stepper::on(const Terminate& event) {
  if (s_.phase == Phase::ended || s_.phase == Phase::requeueing || s_.phase == Phase::finishing) {
    return;
  }
  if (s_.phase == Phase::saving && !s_.ending_restarts) {
    return;
  }
  log("signal", {{"reason", event.reason}});
  s_.ending_restarts = false;
  s_.ending_requeues = event.requeue;
  if (s_.phase == Phase::running) {
    save_and_exit(event.reason, s_.policy.terminate);
  } else if (s_.phase == Phase::saving) {
    s_.ending = event.reason;
  } else {
    s_.ending = event.reason;
    request_requeue();
  }
}

void Stepper::on(const RequeueAnswer& event) {
  if (s_.phase != Phase::requeueing) {
    return;
  }
  const bool patient = in_phase() < s_.policy.ask;
  if (event.kind == RequeueAnswer::Kind::accepted) {
    say(fmt::format("requeued ({}); step {} is complete", s_.ending, s_.best_step));
    finish(kExitRequeued);
  } else if (event.kind == RequeueAnswer::Kind::unheard && patient) {
    say(fmt::format("{}: asking for the requeue again", event.why_not));
    s_.ask_at = plus(now_, s_.policy.ask_again);
  } else {
    fail_run(kExitFailed, fmt::format("{}: not requeued: {}", s_.ending, event.why_not));
  }
}

// Slurm, for what it did not answer.
void Stepper::ask_again() {
  if (s_.phase == Phase::requeueing && s_.ask_at && now_ >= *s_.ask_at) {
    s_.ask_at.reset();
    act(AskRequeue{});
  }
  if (s_.limit_ask_at && now_ >= *s_.limit_ask_at) {
    s_.limit_ask_at.reset();
    act(AskTimeLeft{});
  }
}

void Stepper::pass_over_own_pause() {
  constexpr Time::duration kMostCounted = std::chrono::milliseconds(500);
  const Time::duration pause = now_ - s_.ticked - kMostCounted;
  s_.ticked = now_;
  if (pause <= Time::duration(0)) {
    return;
  }
  const auto later = [&](Time& time) { time = std::min(time + pause, now_); };
  later(s_.phase_since);
  for (auto& [name, node] : s_.nodes) {
    later(node.heard);
  }
  for (auto& [number, rank] : s_.ranks) {
    later(rank.heard);
  }
}

void Stepper::on(const Tick&) {
  pass_over_own_pause();
  ask_again();
  switch (s_.phase) {
    case Phase::gathering:
      gather();
      break;
    case Phase::running:
      if (s_.rank_end && now_ - s_.rank_ended_at > s_.policy.last_words) {
        lose(*s_.rank_end);
      } else {
        look_for_silence();
      }
      if (s_.phase == Phase::running) {
        watch_limit();
      }
      break;
    case Phase::finishing:
      if (in_phase() > s_.policy.finish) {
        say("mpirun did not end after all ranks were done, and is killed");
        finish(kExitDone);
      }
      break;
    case Phase::judging:
      judge();
      break;
    case Phase::saving:
      look_for_silence();
      if (s_.phase == Phase::saving && now_ > s_.deadline) {
        say("ranks did not save and exit in time");
        end_saving();
      }
      break;
    case Phase::requeueing:
    case Phase::ended:
      break;
  }
}

State begin(const Policy& policy, std::vector<std::string> nodes, Time now) {
  State state;
  state.policy = policy;
  state.phase_since = now;
  state.ticked = now;
  state.order = std::move(nodes);
  for (const std::string& name : state.order) {
    state.nodes[name].heard = now;
  }
  return state;
}

Actions first_actions() {
  return {AskTimeLeft{}};
}

Actions step(State& state, const Event& event, Time now) {
  Stepper stepper(state, now);
  std::visit([&](const auto& seen) { stepper.on(seen); }, event);
  return stepper.take();
}

Seconds save_margin(const State& state) {
  const Seconds wanted = 2 * state.longest_save + 2 * state.longest_step + Seconds(10);
  return std::min(std::max(wanted, Seconds(20)), state.limit_at_first / 4);
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "mpi_runtime/supervise/stepper.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace acb::train {

double tenths(Seconds seconds) {
  return std::round(seconds.count() * 10) / 10;
}

std::string count_of(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Not in the header: inlined into a switch, g++ 12 takes the variant's other members for read.
void Stepper::act(Action action) {
  actions_.push_back(std::move(action));
}

std::vector<std::string> Stepper::usable_nodes() const {
  std::vector<std::string> usable;
  for (const std::string& name : s_.order) {
    const NodeView& node = s_.nodes.at(name);
    if (node.joined && !node.lost) {
      usable.push_back(name);
    }
  }
  return usable;
}

void Stepper::gather() {
  if (s_.phase != Phase::gathering) {
    return;
  }
  const bool late = in_phase() >= s_.policy.agent_start;
  bool complete = true;
  for (const auto& [name, node] : s_.nodes) {
    complete = complete && (node.joined || node.lost);
    if (late && !node.joined && !node.lost) {
      drop_node(name, "its agent did not start", in_phase());
    }
  }
  if (!complete && !late) {
    return;
  }
  std::vector<std::string> usable;
  for (const std::string& name : usable_nodes()) {
    if (s_.nodes.at(name).leaving) {
      drop_node(name, "reclaimed", Seconds(0));
    } else {
      usable.push_back(name);
    }
  }
  if (!usable.empty()) {
    launch(usable);
  } else if (std::any_of(s_.nodes.begin(), s_.nodes.end(), [](const auto& entry) {
               return entry.second.leaving;
             })) {
    s_.ending = "reclaimed before the start, and no node is left";
    s_.ending_requeues = true;
    request_requeue();
  } else {
    fail_run(kExitFailed, "no node is left: no agent could be started");
  }
}

void Stepper::launch(const std::vector<std::string>& nodes) {
  ++s_.start;
  s_.running_on = nodes;
  s_.ranks.clear();
  s_.rank_end.reset();
  s_.size = 0;
  s_.best_before = s_.best_step;
  s_.step_of_start = 0;
  s_.mpirun_runs = true;
  enter(Phase::running);
  log(s_.start == 1 ? "start" : "restart", {{"start", s_.start}, {"nodes", nodes}});
  act(StartMpirun{s_.start, nodes});
}

void Stepper::drop_node(const std::string& name, const std::string& why, Seconds silent) {
  s_.nodes.at(name).lost = true;
  s_.nodes.at(name).why_lost = why;
  log("lost", {{"node", name}, {"why", why}, {"silent_s", tenths(silent)}, {"start", s_.start}});
}

void Stepper::lose(Loss loss) {
  if (s_.phase == Phase::saving && !s_.ending_restarts) {
    // The save is lost with whom it needed; an older checkpoint has to do.
    say(fmt::format("{} lost while saving ({})", loss.what, loss.why));
    request_requeue();
    return;
  }
  s_.ending_restarts = false;
  log("loss", {{"what", loss.what}, {"why", loss.why}, {"start", s_.start}});
  s_.loss = std::move(loss);
  s_.slurm_answered = false;
  s_.slurm_nodes.reset();
  for (auto& [name, node] : s_.nodes) {
    node.clear = false;
  }
  enter(Phase::judging);
  if (s_.mpirun_runs) {
    act(KillMpirun{});
  }
  act(ClearNodes{s_.start});
  act(AskSlurmNodes{});
}

void Stepper::look_for_silence() {
  for (const auto& [name, node] : s_.nodes) {
    const Seconds silent = now_ - node.heard;
    if (node.joined && !node.lost && silent > s_.policy.silence) {
      const Time heard = node.heard;
      drop_node(name, "silent", silent);
      lose({heard, "node " + name, fmt::format("silent for {:.1f} s", silent.count())});
      return;
    }
  }
  if (s_.phase != Phase::running) {
    return;  // ranks that save and exit fall silent rightly
  }
  for (const auto& [number, rank] : s_.ranks) {
    const Seconds silent = now_ - rank.heard;
    if (!rank.done && !rank.gone && silent > s_.policy.silence) {
      lose({rank.heard,
            fmt::format("rank {} on {}", number, rank.node),
            fmt::format("silent for {:.1f} s", silent.count())});
      return;
    }
  }
  const bool all_heard = s_.size > 0 && static_cast<int>(s_.ranks.size()) == s_.size;
  if (!all_heard && in_phase() > s_.policy.rank_start) {
    lose({now_,
          fmt::format("start {}", s_.start),
          fmt::format("only {} reported within {:.0f} s",
                      count_of(s_.ranks.size(), "rank"),
                      s_.policy.rank_start.count())});
  }
}

void Stepper::watch_limit() {
  if (!s_.limit || Seconds(*s_.limit - now_) > save_margin(s_)) {
    return;
  }
  if (!s_.limit_asked) {
    // Limits are moved by their owners; the next tick acts on the answer.
    s_.limit_asked = true;
    s_.limit_asked_at = now_;
    act(AskTimeLeft{});
  } else if (now_ - s_.limit_asked_at > Seconds(1)) {
    s_.ending_restarts = false;
    s_.ending_requeues = true;
    // A fifth of what is left, at most 5 s, stays for the requeue.
    const Seconds left = *s_.limit - now_;
    save_and_exit("time limit", left - std::min<Seconds>(left / 5, Seconds(5)));
  }
}

// Who allows for longer silences (a slow network, a host that swaps) means them here too.
Seconds Stepper::settle() const {
  return std::max(s_.policy.settle, s_.policy.silence / 2);
}

// Whether the node may yet answer; one that will not is dropped.
bool Stepper::waits_for_node(const std::string& name, const NodeView& node) {
  if (node.lost || node.clear) {
    return false;
  }
  const Seconds silent = now_ - std::max(node.heard, s_.phase_since);
  if (silent > settle() || !node.joined) {
    drop_node(name, "silent", now_ - node.heard);
    return false;
  }
  if (in_phase() > s_.policy.clear + (settle() - s_.policy.settle)) {
    drop_node(name, "its old ranks do not end", now_ - node.heard);
    return false;
  }
  return true;
}

void Stepper::judge() {
  if (s_.mpirun_runs && in_phase() > s_.policy.mpirun_end) {
    // Something of this host holds it. Beside it none can be started, and Slurm can look elsewhere.
    s_.ending = s_.loss->what + " lost (" + s_.loss->why + "), and the killed mpirun does not end";
    s_.ending_requeues = true;
    request_requeue();
    return;
  }
  bool waiting = s_.mpirun_runs || (!s_.slurm_answered && in_phase() < 2 * settle());
  for (const auto& [name, node] : s_.nodes) {
    waiting = waits_for_node(name, node) || waiting;
  }
  if (waiting) {
    return;
  }
  std::vector<std::string> left;
  for (const std::string& name : usable_nodes()) {
    const NodeView& node = s_.nodes.at(name);
    const auto& known = s_.slurm_nodes;
    if (known && std::find(known->begin(), known->end(), name) == known->end()) {
      drop_node(name, "Slurm has taken it from the job", Seconds(0));
    } else if (node.leaving) {
      drop_node(name, "reclaimed", Seconds(0));
    } else {
      left.push_back(name);
    }
  }
  std::vector<std::string> lost;
  for (const std::string& name : s_.running_on) {
    if (std::find(left.begin(), left.end(), name) == left.end()) {
      lost.push_back(name);
    }
  }
  restart_on(left, lost);
}

// No rank has ever reported, and mpirun's line has ended as if all were well, or could not be run
// (126 and 127 are a shell's codes for that): it is the line that is wrong.
bool Stepper::is_hopeless() const {
  const int code = s_.loss->program_exit;
  return s_.best_step == 0 && s_.ranks.empty() && (code == 0 || code == 126 || code == 127);
}

bool Stepper::gives_up(bool same_nodes) {
  if (s_.best_step > s_.best_before) {
    s_.fruitless = 0;
  } else if (same_nodes) {
    ++s_.fruitless;
  }
  return s_.fruitless >= s_.policy.fruitless_starts;
}

void Stepper::restart_on(const std::vector<std::string>& nodes,
                         const std::vector<std::string>& lost) {
  if (lost.empty() && is_hopeless()) {
    fail_run(kExitFailed,
             fmt::format("{}: {}; not started again, since that would end the same way",
                         s_.loss->what,
                         s_.loss->why));
    return;
  }
  // What was lost, and apart from it what was found to be gone when that was looked into.
  std::string told = fmt::format("{} lost ({})", s_.loss->what, s_.loss->why);
  for (const std::string& name : lost) {
    if (s_.loss->what != "node " + name) {
      told += fmt::format(", without {} ({})", name, s_.nodes.at(name).why_lost);
    }
  }
  if (nodes.empty()) {
    s_.ending = told + ", and no node is left";
    s_.ending_requeues = true;
    request_requeue();
    return;
  }
  if (gives_up(lost.empty())) {
    const std::string code = s_.loss->program_exit > 0
                                 ? fmt::format("; mpirun's exit code {}", s_.loss->program_exit)
                                 : "";
    fail_run(kExitNoProgress,
             fmt::format("{} starts on the same nodes made no new step; the last: {}: {}{}",
                         s_.fruitless,
                         s_.loss->what,
                         s_.loss->why,
                         code));
    return;
  }
  if (static_cast<int>(nodes.size()) < s_.policy.min_nodes) {
    say(fmt::format(
        "{}; {} left of at least {}", told, count_of(nodes.size(), "node"), s_.policy.min_nodes));
    s_.ending = "too few nodes left";
    s_.ending_requeues = true;
    request_requeue();
    return;
  }
  say(fmt::format("{}; restarting on {}{}",
                  told,
                  lost.empty() ? "the same " : "",
                  count_of(nodes.size(), "node")));
  launch(nodes);
}

void Stepper::save_and_exit(const std::string& reason, Seconds left) {
  s_.ending = reason;
  s_.deadline = plus(now_, left);
  enter(Phase::saving);
  tell_to_save();
}

void Stepper::tell_to_save() {
  const Seconds left = s_.deadline - now_;
  log("save-and-exit", {{"reason", s_.ending}, {"deadline_s", tenths(left)}});
  say(fmt::format(
      "{}: asking the ranks to save and exit within {:.0f} s", s_.ending, left.count()));
  act(TellSaveAndExit{left, s_.ending});
}

void Stepper::end_saving() {
  if (s_.ending_restarts) {
    lose({now_, "the old set of nodes", s_.ending});
  } else {
    request_requeue();
  }
}

void Stepper::request_requeue() {
  if (s_.mpirun_runs) {
    act(KillMpirun{});
  }
  if (s_.ending_requeues && s_.policy.no_requeue.empty()) {
    enter(Phase::requeueing);
    // Before it is asked: Slurm may end this process sooner than its answer arrives.
    log("requeue", {{"reason", s_.ending}, {"step", s_.best_step}});
    act(AskRequeue{});
  } else {
    fail_run(kExitFailed,
             fmt::format("{}: stopped after step {}, and {}",
                         s_.ending,
                         s_.best_step,
                         s_.ending_requeues ? s_.policy.no_requeue : kAsAsked));
  }
}

void Stepper::finish(int exit_code) {
  if (exit_code == kExitDone) {
    log("done", {{"step", s_.best_step}, {"starts", s_.start}});
    say(fmt::format(
        "done: step {}, {}", s_.best_step, count_of(static_cast<std::size_t>(s_.start), "start")));
  }
  if (s_.mpirun_runs) {
    act(KillMpirun{});
  }
  enter(Phase::ended);
  act(Finish{exit_code});
}

void Stepper::fail_run(int exit_code, const std::string& why) {
  log("fail", {{"why", why}, {"exit", exit_code}, {"step", s_.best_step}});
  say(why);
  finish(exit_code);
}

}  // namespace acb::train

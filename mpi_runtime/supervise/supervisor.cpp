// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/supervise/supervisor.h"

#include "base/process.h"
#include "base/text.h"
#include "mpi_runtime/agent/memory_folder.h"
#include "mpi_runtime/report/run_lock.h"
#include "mpi_runtime/report/server.h"
#include "mpi_runtime/supervise/event_log.h"
#include "mpi_runtime/supervise/slurm_commands.h"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>

namespace acb::train {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{100};
constexpr std::chrono::seconds kAgentsEnd{5};

std::string environment_or(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

/// A child that has ended, by waitpid without waiting.
std::optional<int> ended(pid_t pid) {
  int status = 0;
  return ::waitpid(pid, &status, WNOHANG) == pid ? std::optional(exit_code_of(status))
                                                 : std::nullopt;
}

class Supervisor {
 public:
  Supervisor(const RunSettings& settings, ReportServer server, EventLog log, UniqueFd signals)
      : settings_(settings),
        server_(std::move(server)),
        log_(std::move(log)),
        signals_(std::move(signals)) {}

  [[nodiscard]] Status start(const std::string& secret, const std::string& run);
  int run();

 private:
  void feed(const Event& event);
  void carry_out(const Action& action);
  void do_action(const StartMpirun& action);
  void do_action(const KillMpirun& action);
  void do_action(const ClearNodes& action);
  void do_action(const AskSlurmNodes& action);
  void do_action(const AskTimeLeft& action);
  void do_action(const AskRequeue& action);
  void do_action(const TellSaveAndExit& action);
  void do_action(const ConfirmDone& action);
  void do_action(const Log& action) { log_.write(action.event); }
  void do_action(const Say& action) { say(action.text); }
  void do_action(const Finish& action) { exit_code_ = action.exit_code; }

  [[nodiscard]] Status start_agents();
  void end_agents();
  void take(const ServerEvent& event);
  void take_joined(const ServerEvent& event);
  void take_from_agent(const ServerEvent& event, const std::string& type);
  void take_from_rank(const ServerEvent& event, const std::string& type);
  void take_signals();
  void reap();
  void take_answers();
  void beat();
  void tell_agents(const Json& message);

  const RunSettings& settings_;
  ReportServer server_;
  EventLog log_;
  UniqueFd signals_;
  State state_;
  EnvironmentChange environment_;  // what agents and ranks get
  std::map<std::string, pid_t> agent_pids_;
  std::map<std::string, int> agents_;  // node to its connection
  std::map<int, int> ranks_;           // rank of the current start to its connection
  pid_t mpirun_ = 0;
  std::vector<std::future<Event>> answers_;
  std::optional<int> exit_code_;
  int interrupts_ = 0;
  Clock::time_point next_beat_;
};

Status Supervisor::start(const std::string& secret, const std::string& run) {
  std::vector<std::string> names;
  for (const NodeShare& node : settings_.nodes) {
    names.push_back(node.name);
  }
  environment_ = {
      {"AUTOCLOUD_SUPERVISOR", settings_.address + ":" + std::to_string(server_.port())},
      {"AUTOCLOUD_SECRET", secret},
      {"AUTOCLOUD_RUN", run},
      {"AUTOCLOUD_MEMORY", memory_prefix(settings_.memory, ::geteuid(), run)}};
  log_.write({{"event", "run"}, {"run", run}, {"job", settings_.job}, {"nodes", names}});
  state_ = begin(settings_.policy, names, Clock::now());
  ACB_TRY(start_agents());
  if (settings_.left) {
    feed(TimeLeft{settings_.left});
  }
  for (const Action& action : first_actions()) {
    carry_out(action);
  }
  return {};
}

Status Supervisor::start_agents() {
  for (const NodeShare& node : settings_.nodes) {
    ProcessSpec spec{
        .arguments = {settings_.agent.string()}, .environment = environment_, .own_group = true};
    if (!settings_.job.empty()) {
      spec.arguments = srun_on_node(node.name, spec.arguments);
      // They would be taken for options of this one-process step.
      for (const char* name : {"SLURM_NTASKS_PER_NODE",
                               "SLURM_TRES_PER_TASK",
                               "SLURM_GPUS_PER_TASK",
                               "SLURM_GPUS_PER_NODE",
                               "SLURM_GPUS",
                               "SLURM_NTASKS",
                               "SLURM_NPROCS",
                               "SLURM_MEM_PER_CPU",
                               "SLURM_MEM_PER_NODE",
                               "SLURM_DISTRIBUTION"}) {
        spec.environment[name] = std::nullopt;
      }
    }
    ACB_TRY_ASSIGN(agent_pids_[node.name], spawn(spec));
  }
  return {};
}

int Supervisor::run() {
  while (!exit_code_) {
    for (const ServerEvent& event : server_.poll(signals_.get(), kTick)) {
      take(event);
    }
    take_signals();
    reap();
    take_answers();
    beat();
    feed(Tick{});
  }
  end_agents();
  return *exit_code_;
}

void Supervisor::feed(const Event& event) {
  for (const Action& action : step(state_, event, Clock::now())) {
    carry_out(action);
  }
}

void Supervisor::carry_out(const Action& action) {
  std::visit([this](const auto& wanted) { do_action(wanted); }, action);
}

void Supervisor::do_action(const StartMpirun& action) {
  std::vector<NodeShare> nodes;
  int slots = 0;
  for (const NodeShare& node : settings_.nodes) {
    if (std::find(action.nodes.begin(), action.nodes.end(), node.name) != action.nodes.end()) {
      nodes.push_back(node);
      slots += node.tasks;
    }
  }
  ProcessSpec spec{.arguments = settings_.mpirun, .environment = environment_, .own_group = true};
  spec.environment["AUTOCLOUD_START"] = std::to_string(action.start);
  std::vector<std::string> exported = {"AUTOCLOUD_START"};
  for (const auto& [name, value] : environment_) {
    exported.push_back(name);
  }
  if (exports_variables(settings_.mpirun)) {
    // Open MPI takes either -x or the list. A name without a value shows nothing in ps.
    for (const std::string& name : exported) {
      spec.arguments.insert(spec.arguments.begin() + 1, {"-x", name});
    }
  } else {
    const std::string own = environment_or("OMPI_MCA_mca_base_env_list", "");
    spec.environment["OMPI_MCA_mca_base_env_list"] =
        (own.empty() ? own : own + ";") + join(exported, ";");
  }
  if (!settings_.job.empty()) {
    spec.environment.merge(environment_for(nodes));
    spec.arguments = fit_ranks(std::move(spec.arguments), slots);
  }
  ranks_.clear();
  auto pid = spawn(spec);
  mpirun_ = pid ? *pid : 0;
  if (!pid) {
    say(pid.error().message);
    feed(MpirunEnded{127});
  }
}

void Supervisor::do_action(const KillMpirun&) {
  if (mpirun_ > 0) {
    ::kill(-mpirun_, SIGKILL);
  }
}

void Supervisor::do_action(const ClearNodes& action) {
  tell_agents({{"type", "clear"}, {"start", action.start}});
}

void Supervisor::do_action(const AskSlurmNodes&) {
  answers_.push_back(std::async(std::launch::async, [job = settings_.job]() -> Event {
    if (job.empty()) {
      return SlurmNodes{std::nullopt};
    }
    const auto nodes = slurm_job_nodes(job);
    return SlurmNodes{nodes ? std::optional(*nodes) : std::nullopt};
  }));
}

void Supervisor::do_action(const AskTimeLeft&) {
  if (settings_.job.empty()) {
    return;
  }
  answers_.push_back(std::async(std::launch::async, [job = settings_.job]() -> Event {
    const auto left = slurm_time_left(job);
    if (!left) {
      return TimeUnsaid{};
    }
    return TimeLeft{*left ? std::optional<Seconds>(**left) : std::nullopt};
  }));
}

void Supervisor::do_action(const AskRequeue&) {
  log_.sync();
  answers_.push_back(std::async(std::launch::async, [job = settings_.job]() -> Event {
    const auto asked = slurm_requeue(job);
    if (asked) {
      return RequeueAnswer{RequeueAnswer::Kind::accepted, ""};
    }
    const bool refused = asked.error().code == ErrorCode::denied;
    return RequeueAnswer{refused ? RequeueAnswer::Kind::refused : RequeueAnswer::Kind::unheard,
                         asked.error().message};
  }));
}

void Supervisor::do_action(const TellSaveAndExit& action) {
  const Json message = {
      {"type", "save-and-exit"}, {"deadline_s", action.left.count()}, {"reason", action.reason}};
  for (const auto& [rank, client] : ranks_) {
    server_.send(client, message);
  }
}

void Supervisor::do_action(const ConfirmDone& action) {
  if (const auto found = ranks_.find(action.rank); found != ranks_.end()) {
    server_.send(found->second, {{"type", "done-heard"}});
  }
}

void Supervisor::tell_agents(const Json& message) {
  for (const auto& [node, client] : agents_) {
    server_.send(client, message);
  }
}

void Supervisor::take(const ServerEvent& event) {
  const std::string type = json_or<std::string>(event.message, "type", "");
  const bool agent = event.hello.kind == ClientKind::agent;
  if (event.kind == ServerEvent::Kind::joined) {
    take_joined(event);
  } else if (agent) {
    const auto found = agents_.find(event.hello.node);
    if (found != agents_.end() && found->second == event.client) {
      take_from_agent(event, type);
    }
  } else {
    const auto found = ranks_.find(event.hello.rank);
    if (found != ranks_.end() && found->second == event.client) {
      take_from_rank(event, type);
    }
  }
}

void Supervisor::take_joined(const ServerEvent& event) {
  const Hello& hello = event.hello;
  if (hello.kind == ClientKind::agent) {
    const auto node = state_.nodes.find(hello.node);
    if (node == state_.nodes.end() || node->second.lost || agents_.contains(hello.node)) {
      server_.refuse(event.client, "no agent is wanted for " + hello.node);
      return;
    }
    agents_[hello.node] = event.client;
    feed(AgentHeard{hello.node});
    return;
  }
  if (hello.start != state_.start || state_.phase == Phase::judging ||
      ranks_.contains(hello.rank)) {
    server_.refuse(event.client, "start " + std::to_string(hello.start) + " is over");
    return;
  }
  ranks_[hello.rank] = event.client;
  feed(RankJoined{hello.start, hello.rank, hello.size, hello.node});
}

void Supervisor::take_from_agent(const ServerEvent& event, const std::string& type) {
  const std::string& node = event.hello.node;
  if (event.kind == ServerEvent::Kind::gone) {
    agents_.erase(node);
    feed(AgentGone{node});
  } else if (type == "clear") {
    feed(AgentClear{node, json_or<int>(event.message, "start", 0)});
  } else if (type == "notice") {
    feed(ReclaimNotice{node, Seconds(json_or<double>(event.message, "deadline_s", 0))});
  } else if (type == "terminate") {
    feed(Terminate{json_or<std::string>(event.message, "reason", "") + " on " + node, true});
  } else {
    feed(AgentHeard{node});
  }
}

void Supervisor::take_from_rank(const ServerEvent& event, const std::string& type) {
  const int start = event.hello.start;
  const int rank = event.hello.rank;
  const auto number = json_or<std::int64_t>(event.message, "step", 0);
  if (event.kind == ServerEvent::Kind::gone) {
    ranks_.erase(rank);
    feed(RankGone{start, rank});
  } else if (type == "step") {
    feed(RankStep{start, rank, number, json_or<double>(event.message, "loss", std::nan(""))});
  } else if (type == "saved") {
    feed(RankSaved{start,
                   rank,
                   json_or<std::string>(event.message, "level", ""),
                   number,
                   Seconds(json_or<double>(event.message, "seconds", 0))});
  } else if (type == "give-up") {
    feed(RankGaveUp{start, rank, json_or<std::string>(event.message, "reason", "it gave up")});
  } else if (type == "done") {
    feed(RankDone{start, rank, number});
  } else {
    feed(RankHeard{start, rank});
  }
}

void Supervisor::take_signals() {
  signalfd_siginfo taken{};
  while (::read(signals_.get(), &taken, sizeof taken) > 0) {
    const int number = static_cast<int>(taken.ssi_signo);
    if (number == SIGCHLD) {
      continue;
    }
    if (number == SIGINT && ++interrupts_ > 1) {
      say("interrupted again: stopping at once");
      do_action(KillMpirun{});
      exit_code_ = kExitFailed;
    } else {
      // Whoever presses Ctrl-C is there to start the job again.
      feed(Terminate{std::string("SIG") + ::sigabbrev_np(number), number != SIGINT});
    }
  }
}

void Supervisor::reap() {
  if (mpirun_ > 0) {
    if (const auto code = ended(mpirun_)) {
      mpirun_ = 0;
      feed(MpirunEnded{*code});
    }
  }
  for (auto entry = agent_pids_.begin(); entry != agent_pids_.end();) {
    const auto code = ended(entry->second);
    if (!code) {
      ++entry;
      continue;
    }
    const std::string node = entry->first;
    entry = agent_pids_.erase(entry);
    // One that had joined is told of by its connection.
    if (!exit_code_ && !agents_.contains(node)) {
      say("the agent on " + node + " ended with " + std::to_string(*code));
      feed(AgentGone{node});
    }
  }
}

void Supervisor::take_answers() {
  std::vector<Event> ready;
  std::erase_if(answers_, [&](std::future<Event>& answer) {
    const bool done = answer.wait_for(milliseconds(0)) == std::future_status::ready;
    if (done) {
      ready.push_back(answer.get());
    }
    return done;
  });
  for (const Event& event : ready) {
    feed(event);
  }
}

// Ranks and agents learn from it that the supervisor lives.
void Supervisor::beat() {
  if (Clock::now() < next_beat_) {
    return;
  }
  next_beat_ = Clock::now() + kAliveInterval;
  tell_agents({{"type", "alive"}});
}

void Supervisor::end_agents() {
  tell_agents({{"type", "end"}});
  const Clock::time_point limit = Clock::now() + kAgentsEnd;
  std::set<std::string> silent;
  for (const auto& [name, node] : state_.nodes) {
    if (node.lost) {
      silent.insert(name);
    }
  }
  const auto waiting = [&] {
    return std::any_of(agent_pids_.begin(), agent_pids_.end(), [&](const auto& entry) {
      return !silent.contains(entry.first);
    });
  };
  while ((waiting() || mpirun_ > 0) && Clock::now() < limit) {
    for (const ServerEvent& event : server_.poll(-1, milliseconds(20))) {
      if (event.kind == ServerEvent::Kind::gone && event.hello.kind == ClientKind::agent) {
        agents_.erase(event.hello.node);
      }
    }
    if (mpirun_ > 0 && ended(mpirun_)) {
      mpirun_ = 0;
    }
    std::erase_if(agent_pids_, [](const auto& entry) { return ended(entry.second).has_value(); });
  }
  for (const auto& [node, pid] : agent_pids_) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

}  // namespace

sigset_t supervised_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&signals, number);
  }
  return signals;
}

Result<int> supervise(const RunSettings& settings) {
  const sigset_t taken = supervised_signals();
  UniqueFd signals(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) {
    return fail_errno("autocloud-run: signalfd");
  }
  const std::string secret = random_hex(32);
  const std::string bind_address = settings.job.empty() ? "127.0.0.1" : "0.0.0.0";
  ACB_TRY_ASSIGN(ReportServer server, ReportServer::listen(secret, bind_address));
  const std::string run = new_run_id();
  ACB_TRY_ASSIGN(const UniqueFd lock, lock_run_folder(settings.run_folder, run));
  ACB_TRY_ASSIGN(EventLog log, EventLog::open(settings.run_folder));
  Supervisor supervisor(settings, std::move(server), std::move(log), std::move(signals));
  ACB_TRY(supervisor.start(secret, run));
  return supervisor.run();
}

}  // namespace acb::train

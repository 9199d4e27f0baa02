// SPDX-License-Identifier: Apache-2.0
// What the supervisor decides, without its hands: a pure function of the state, one event and the
// time. Sockets, processes and Slurm are supervisor.h's.
//
// A run gathers one agent per node, starts mpirun, and hears its ranks. A rank or a node that falls
// silent, a rank that ends without having said "done", and an mpirun that ends before all have, are
// losses, whatever any exit code says. Then the old mpirun is killed, each agent clears its node of
// old ranks (which proves that the node lives), and mpirun is started again on those that answered.
#pragma once

#include "mpi_runtime/supervise/events.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace acb::train {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitRequeued = 85;
constexpr int kExitNoProgress = 86;

constexpr const char* kAsAsked = "not requeued, as asked";

struct Policy {
  Seconds silence{3.0};      ///< a rank or agent not heard for longer is lost
  Seconds last_words{2.0};   ///< after a rank's end: for mpirun to end too (Open MPI: 1 s)
  Seconds settle{1.5};       ///< after a loss: how long a silent agent may take to answer, at least
  Seconds clear{8.0};        ///< and one that is heard, to end its old ranks
  Seconds mpirun_end{30.0};  ///< and a killed mpirun, to end
  Seconds agent_start{30.0};  ///< from asking for an agent to hearing it
  Seconds rank_start{120.0};  ///< from starting mpirun to hearing every rank
  Seconds finish{10.0};       ///< from the last "done" to mpirun's end
  Seconds terminate{25.0};    ///< to save, after SIGTERM: less than Slurm's KillWait (30 s)
  Seconds ask_limit{10.0};    ///< for the time limit, where Slurm did not say: to ask again
  Seconds ask_again{2.0};     ///< from one unheard request for a requeue to the next
  Seconds ask{120.0};         ///< for a requeue, before giving up; Slurm's kill may come before
  int fruitless_starts = 3;   ///< starts on unchanged nodes without a new step before giving up
  int min_nodes = 1;          ///< with fewer left, the run is requeued instead of restarted
  std::string no_requeue;     ///< why none is ever asked for; empty: it is
};

enum class Phase {
  gathering,   ///< agents are starting
  running,     ///< mpirun runs
  finishing,   ///< every rank is done; mpirun has yet to end
  judging,     ///< a loss: which nodes are left?
  saving,      ///< ranks were told to save and exit
  requeueing,  ///< Slurm was asked
  ended
};

struct NodeView {
  bool joined = false;
  bool lost = false;
  std::string why_lost;
  bool leaving = false;  ///< its reclaim was announced
  bool clear = false;    ///< has ended its old ranks since the loss
  Time heard;
};
struct RankView {
  std::string node;
  bool done = false;
  bool gone = false;
  Time heard;
};
struct Loss {
  Time began;             ///< when the lost one was last heard
  std::string what;       ///< "rank 2 on i-07"
  std::string why;        ///< "silent for 3.0 s"
  int program_exit = -1;  ///< mpirun's exit code, where it ended by itself
};

struct State {
  Policy policy;
  Phase phase = Phase::gathering;
  Time phase_since;
  Time ticked;                     ///< the Tick before
  std::vector<std::string> order;  ///< the nodes in Slurm's order
  std::map<std::string, NodeView> nodes;
  std::map<int, RankView> ranks;
  int start = 0;
  std::vector<std::string> running_on;  ///< the nodes of this start
  int size = 0;                         ///< ranks of this start; 0 until the first has joined
  bool mpirun_runs = false;
  std::int64_t best_step = 0;      ///< the highest complete step of the run
  std::int64_t best_before = 0;    ///< its value when this start began
  std::int64_t step_of_start = 0;  ///< the highest of this start
  int fruitless = 0;
  std::optional<Loss> rank_end;  ///< a rank has ended; mpirun may have more to say
  Time rank_ended_at;
  std::optional<Loss> loss;  ///< until training goes on
  std::optional<std::vector<std::string>> slurm_nodes;
  bool slurm_answered = false;
  std::set<std::pair<std::string, std::int64_t>> saves;  ///< level and step, already logged

  Time step_at;  ///< of the last new step
  Seconds longest_step{0};
  Seconds longest_save{0};
  std::optional<Time> limit;  ///< when Slurm ends the job
  Seconds limit_at_first{0};  ///< what was left of it at first
  bool limit_asked = false;   ///< asked again, as the margin was reached
  Time limit_asked_at;
  std::optional<Time> limit_ask_at;  ///< once more, since Slurm did not say
  Time deadline;                     ///< of saving
  std::string ending;                ///< why the run saves and exits
  bool ending_requeues = false;
  std::optional<Time> ask_at;    ///< for a requeue, once more
  bool ending_restarts = false;  ///< saves to leave nodes, then goes on
};

/// The state and first actions of a run on `nodes`.
[[nodiscard]] State begin(const Policy& policy, std::vector<std::string> nodes, Time now);
[[nodiscard]] Actions first_actions();
/// Takes one event into the state. Deadlines are looked at on Tick: give one every 0.1 s or so. A
/// longer pause between two is one of the supervisor itself (a file server that does not answer, a
/// suspended job), in which nobody could be heard: but for half a second it is no one's silence.
[[nodiscard]] Actions step(State& state, const Event& event, Time now);
/// How long before the time limit ranks are told to save: twice the longest save and the longest
/// step seen, and 10 s for Slurm's own work; at least 20 s, and never more than a quarter of the
/// limit.
[[nodiscard]] Seconds save_margin(const State& state);

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
// What the supervisor hears and does, as values: the arguments and results of step() in state.h.
#pragma once

#include "base/json.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace acb::train {

using Time = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;

// Events. Those of ranks carry the start they belong to; of another start they are ignored.
struct AgentHeard {
  std::string node;
};
struct AgentClear {
  std::string node;
  int start = 0;
};
struct AgentGone {
  std::string node;
};
struct ReclaimNotice {
  std::string node;
  Seconds left{0};
};
struct RankJoined {
  int start = 0;
  int rank = 0;
  int size = 0;
  std::string node;
};
struct RankHeard {
  int start = 0;
  int rank = 0;
};
struct RankStep {
  int start = 0;
  int rank = 0;
  std::int64_t step = 0;
  double loss = 0;
};
struct RankSaved {
  int start = 0;
  int rank = 0;
  std::string level;
  std::int64_t step = 0;
  Seconds took{0};
};
struct RankDone {
  int start = 0;
  int rank = 0;
  std::int64_t step = 0;
};
struct RankGaveUp {
  int start = 0;
  int rank = 0;
  std::string reason;
};
struct RankGone {
  int start = 0;
  int rank = 0;
};
struct MpirunEnded {
  int exit_code = 0;
};
struct SlurmNodes {
  std::optional<std::vector<std::string>> nodes;  ///< nullopt: Slurm did not say
};
struct TimeLeft {
  std::optional<Seconds> left;  ///< nullopt: no limit
};
struct TimeUnsaid {};  ///< Slurm did not say what is left
struct Terminate {
  std::string reason;
  bool requeue = true;
};
struct RequeueAnswer {
  enum class Kind {
    accepted,
    refused,
    unheard  ///< Slurm may not have heard, or it does not say: to be asked again
  };
  Kind kind = Kind::accepted;
  std::string why_not;
};
struct Tick {};
using Event = std::variant<AgentHeard,
                           AgentClear,
                           AgentGone,
                           ReclaimNotice,
                           RankJoined,
                           RankHeard,
                           RankStep,
                           RankSaved,
                           RankDone,
                           RankGaveUp,
                           RankGone,
                           MpirunEnded,
                           SlurmNodes,
                           TimeLeft,
                           TimeUnsaid,
                           Terminate,
                           RequeueAnswer,
                           Tick>;

// Actions, carried out in order.
struct StartMpirun {
  int start = 0;
  std::vector<std::string> nodes;
};
struct KillMpirun {};
struct ClearNodes {  ///< every agent ends the ranks of this and earlier starts on its node
  int start = 0;
};
struct AskSlurmNodes {};
struct AskTimeLeft {};
struct AskRequeue {};
struct TellSaveAndExit {
  Seconds left{0};
  std::string reason;
};
struct ConfirmDone {
  int rank = 0;
};
struct Log {  ///< one line of events.jsonl; "at" is added when it is written
  Json event;
};
struct Say {  ///< one line for people
  std::string text;
};
struct Finish {
  int exit_code = 0;
};
using Action = std::variant<StartMpirun,
                            KillMpirun,
                            ClearNodes,
                            AskSlurmNodes,
                            AskTimeLeft,
                            AskRequeue,
                            TellSaveAndExit,
                            ConfirmDone,
                            Log,
                            Say,
                            Finish>;
using Actions = std::vector<Action>;

}  // namespace acb::train

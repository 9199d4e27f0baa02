// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/supervise/slurm_commands.h"

#include "base/process.h"
#include "base/text.h"
#include "mpi_runtime/supervise/nodes.h"

#include <cstdlib>

namespace acb::train {

namespace {

constexpr std::chrono::milliseconds kQueryLimit{2500};
// A busy slurmctld answers late, and nothing is gained by giving up on a requeue sooner.
constexpr std::chrono::milliseconds kRequeueLimit{8000};

Result<std::string> ask_squeue(const std::string& job, const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {"squeue", "-h", "-j", job};
  arguments.insert(arguments.end(), options.begin(), options.end());
  // The user's SQUEUE_* would add columns and filters.
  const ProcessSpec spec{.arguments = arguments,
                         .environment = {{"SQUEUE_FORMAT", std::nullopt},
                                         {"SQUEUE_FORMAT2", std::nullopt},
                                         {"SQUEUE_STATES", std::nullopt},
                                         {"SQUEUE_PARTITION", std::nullopt}}};
  ACB_TRY_ASSIGN(const Finished finished, run_process(spec, kQueryLimit));
  std::string output(trim(finished.output));
  if (finished.exit_code != 0) {
    return fail(ErrorCode::unavailable, "squeue: job " + job + ": " + output);
  }
  return output;
}

}  // namespace

Result<std::vector<std::string>> slurm_job_nodes(const std::string& job) {
  ACB_TRY_ASSIGN(const std::string list, ask_squeue(job, {"-o", "%N"}));
  return expand_hostlist(list);
}

Result<std::optional<std::chrono::seconds>> slurm_time_left(const std::string& job) {
  ACB_TRY_ASSIGN(const std::string left, ask_squeue(job, {"-o", "%L"}));
  return parse_time_left(left);
}

bool was_cancelled(std::string_view job_line, std::int64_t restarts) {
  const auto field = [&](const std::string& name) -> std::string {
    for (const std::string& entry : split(job_line, ' ')) {
      if (entry.starts_with(name + "=")) {
        return std::string(trim(entry.substr(name.size() + 1)));
      }
    }
    return "";
  };
  const std::string state = field("JobState");
  if (state != "COMPLETING") {
    return state == "CANCELLED";
  }
  const auto count = parse_integer("Restarts", field("Restarts"), 0, 1 << 30);
  if (count && *count > restarts) {
    return false;  // Slurm has put it back itself
  }
  if (const std::string preempted = field("PreemptTime");
      !preempted.empty() && preempted != "None") {
    return false;
  }
  const auto ran = parse_time_left(field("RunTime"));
  const auto limit = parse_time_left(field("TimeLimit"));
  const bool timed_out = ran && *ran && limit && *limit && **ran >= **limit;
  return !timed_out;
}

Status slurm_requeue(const std::string& job) {
  const auto shown =
      run_process({.arguments = {"scontrol", "show", "job", "--oneliner", job}}, kQueryLimit);
  const char* count = std::getenv("SLURM_RESTART_COUNT");
  const auto restarts =
      parse_integer("SLURM_RESTART_COUNT", count == nullptr ? "0" : count, 0, 1 << 30);
  if (shown && shown->exit_code == 0 && was_cancelled(shown->output, restarts.value_or(0))) {
    return fail(ErrorCode::denied, "job " + job + " was cancelled");
  }
  ACB_TRY_ASSIGN(const Finished finished,
                 run_process({.arguments = {"scontrol", "requeue", job}}, kRequeueLimit));
  if (finished.exit_code == 0) {
    return {};
  }
  const auto pending = ask_squeue(job, {"-t", "PENDING", "-o", "%i"});
  if (pending && !pending->empty()) {
    return {};
  }
  return fail(ErrorCode::unavailable,
              "scontrol requeue " + job + ": " + std::string(trim(finished.output)));
}

std::vector<std::string> srun_on_node(const std::string& node,
                                      const std::vector<std::string>& command) {
  // The job's own defaults (tasks per node, GPUs per task, ...) do not apply to one small process.
  std::vector<std::string> arguments = {"srun",
                                        "--overlap",
                                        "--nodes=1",
                                        "--ntasks=1",
                                        "--cpus-per-task=1",
                                        "--nodelist=" + node,
                                        "--gres=none",
                                        "--mem=0",
                                        "--mpi=none",
                                        "--input=none",
                                        "--job-name=autocloud-agent",
                                        "--no-kill",
                                        "--unbuffered",
                                        "--export=ALL"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

Result<std::optional<std::chrono::seconds>> parse_time_left(std::string_view text) {
  if (text == "UNLIMITED" || text == "NOT_SET") {
    return std::nullopt;
  }
  std::int64_t total = 0;
  std::string_view clock = text;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos && dash > 0) {
    ACB_TRY_ASSIGN(const std::int64_t days,
                   parse_integer("time left", text.substr(0, dash), 0, 99999));
    total = days * 24;
    clock = text.substr(dash + 1);
  }
  const std::vector<std::string> fields = split(clock, ':');
  if (fields.size() > 3 || (total > 0 && fields.size() != 3)) {
    return fail(ErrorCode::invalid,
                "time left: " + std::string(text) + ": must read like 1-02:03:04");
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    ACB_TRY_ASSIGN(const std::int64_t field, parse_integer("time left", fields[i], 0, 999999));
    total = i == 0 ? total + field : total * 60 + field;
  }
  return std::chrono::seconds(total);
}

}  // namespace acb::train

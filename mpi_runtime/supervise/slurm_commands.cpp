// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/supervise/slurm_commands.h"

#include "base/lost_host.h"
#include "base/process.h"
#include "base/text.h"
#include "mpi_runtime/supervise/nodes.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace acb::train {

namespace {

constexpr std::chrono::milliseconds kQueryLimit{2500};
// A busy slurmctld answers late, and nothing is gained by giving up on a requeue sooner.
constexpr std::chrono::milliseconds kRequeueLimit{8000};
// scancel tries again for a while where another node's signal is still under way: one is enough.
constexpr std::chrono::milliseconds kSignalLimit{2000};
// Another node of the job has said the same so short a time ago.
constexpr std::chrono::seconds kSaidJustNow{30};

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

/// What follows "NAME=" in scontrol's text: up to the next space.
std::string field_of(std::string_view text, const std::string& name) {
  for (const std::string& line : split(text, '\n')) {
    for (const std::string& entry : split(line, ' ')) {
      if (entry.starts_with(name + "=")) {
        return std::string(trim(entry.substr(name.size() + 1)));
      }
    }
  }
  return "";
}

/// The user's comment, which may hold spaces: a line of its own.
std::string comment_of(std::string_view text) {
  constexpr std::string_view kName = "Comment=";
  for (const std::string& line : split(text, '\n')) {
    if (const std::string_view entry = trim(line); entry.starts_with(kName)) {
      return std::string(entry.substr(kName.size()));
    }
  }
  return "";
}

/// The same command, ended by SIGTERM no sooner than by itself: Slurm sends that to all processes
/// of a job, and a request that was under way then is neither made nor answered.
std::vector<std::string> deaf_to_sigterm(std::vector<std::string> command) {
  command.insert(command.begin(), {"sh", "-c", "trap '' TERM; exec \"$@\"", "sh"});
  return command;
}

/// How often Slurm has started this job again, as it told this process.
std::int64_t restarts_here() {
  const char* count = std::getenv("SLURM_RESTART_COUNT");
  return parse_integer("SLURM_RESTART_COUNT", count == nullptr ? "0" : count, 0, 1 << 30)
      .value_or(0);
}

Result<std::string> show_job(const std::string& job) {
  const std::vector<std::string> arguments = {"scontrol", "show", "job", "--oneliner", job};
  ACB_TRY_ASSIGN(Finished shown,
                 run_process({.arguments = deaf_to_sigterm(arguments)}, kQueryLimit));
  if (shown.exit_code != 0) {
    return fail(ErrorCode::unavailable,
                "scontrol show job " + job + ": " + std::string(trim(shown.output)));
  }
  return std::move(shown.output);
}

Status run_command(const std::vector<std::string>& arguments, std::chrono::milliseconds limit) {
  ACB_TRY_ASSIGN(const Finished finished, run_process({.arguments = arguments}, limit));
  if (finished.exit_code != 0) {
    return fail(ErrorCode::unavailable,
                arguments[0] + " " + arguments[1] + ": " + std::string(trim(finished.output)));
  }
  return {};
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

bool was_requeued(std::string_view job_line, std::int64_t restarts) {
  const auto count = parse_integer("Restarts", field_of(job_line, "Restarts"), 0, 1 << 30);
  return (count && *count > restarts) || field_of(job_line, "JobState") == "PENDING";
}

bool is_refusal(std::string_view words) {
  // Of Slurm's table of errors: not requeueable, another user's, unknown, of salloc.
  constexpr std::array<std::string_view, 4> kRefusals = {
      "presently disabled", "permission denied", "Invalid job id", "Only batch jobs"};
  return std::any_of(kRefusals.begin(), kRefusals.end(), [&](std::string_view refusal) {
    return words.find(refusal) != std::string_view::npos;
  });
}

bool was_cancelled(std::string_view job_line, std::int64_t restarts) {
  const std::string state = field_of(job_line, "JobState");
  if (state != "COMPLETING") {
    return state == "CANCELLED";
  }
  if (was_requeued(job_line, restarts)) {
    return false;
  }
  if (const std::string preempted = field_of(job_line, "PreemptTime");
      !preempted.empty() && preempted != "None") {
    return false;
  }
  const auto ran = parse_time_left(field_of(job_line, "RunTime"));
  const auto limit = parse_time_left(field_of(job_line, "TimeLimit"));
  const bool timed_out = ran && *ran && limit && *limit && **ran >= **limit;
  return !timed_out;
}

Status slurm_requeue(const std::string& job) {
  // Without an answer nothing is asked, since it might undo the user's scancel.
  ACB_TRY_ASSIGN(const std::string shown, show_job(job));
  if (was_requeued(shown, restarts_here())) {
    return {};
  }
  if (was_cancelled(shown, restarts_here())) {
    return fail(ErrorCode::denied, "job " + job + " was cancelled");
  }
  const auto finished =
      run_process({.arguments = deaf_to_sigterm({"scontrol", "requeue", job})}, kRequeueLimit);
  if (finished && finished->exit_code == 0) {
    return {};
  }
  if (const auto now = show_job(job); now && was_requeued(*now, restarts_here())) {
    return {};
  }
  ACB_TRY(finished);
  const std::string words(trim(finished->output));
  return fail(is_refusal(words) ? ErrorCode::denied : ErrorCode::unavailable,
              "scontrol requeue " + job + ": " + words);
}

std::optional<std::string> lost_host_comment(std::string_view job_text,
                                             std::int64_t restarts,
                                             WallTime now) {
  const LostHost lost{restarts, field_of(job_text, "BatchHost"), now};
  if (field_of(job_text, "JobState") != "RUNNING" || lost.host.empty() ||
      field_of(job_text, "Restarts") != std::to_string(restarts)) {
    return std::nullopt;
  }
  const std::string comment = comment_of(job_text);
  const auto said = acb::lost_host(comment);
  if (said && said->restart == lost.restart && said->host == lost.host &&
      now - said->at < kSaidJustNow) {
    return std::nullopt;
  }
  return with_lost_host(comment, lost);
}

Status slurm_report_lost_host(const std::string& job) {
  ACB_TRY_ASSIGN(const Finished shown,
                 run_process({.arguments = {"scontrol", "show", "job", job}}, kRequeueLimit));
  if (shown.exit_code != 0) {
    return fail(ErrorCode::unavailable,
                "scontrol show job " + job + ": " + std::string(trim(shown.output)));
  }
  const auto comment = lost_host_comment(shown.output, restarts_here(), wall_now());
  if (!comment) {
    return {};
  }
  ACB_TRY(
      run_command({"scontrol", "update", "jobid=" + job, "comment=" + *comment}, kRequeueLimit));
  const Status sent = run_command({"scancel", "--batch", "--signal=CONT", job}, kSignalLimit);
  return sent || sent.error().code == ErrorCode::timeout ? Status() : sent;
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
  if (text == "UNLIMITED") {
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

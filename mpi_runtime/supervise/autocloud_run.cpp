// SPDX-License-Identifier: Apache-2.0
// autocloud-run: runs an mpirun line to its end over the loss of nodes.
#include "base/text.h"
#include "mpi_runtime/report/reporter.h"
#include "mpi_runtime/supervise/event_log.h"
#include "mpi_runtime/supervise/supervisor.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

namespace acb::train {
namespace {

constexpr const char* kAbout =
    "Supervises mpirun: restarts it on the nodes that are left when one is lost, asks Slurm for a\n"
    "requeue before the time limit, and ends with 0 only if every rank said that it was done.\n";
constexpr const char* kFooter =
    "Exit codes: 0 done, 85 requeued, 86 three starts without a new step, 1 failed, 2 usage.\n"
    "Example, in a batch script:\n"
    "  autocloud-run --run-dir /shared/run1 -- mpirun --bind-to none autocloud-train --config "
    "gpt2.toml\n"
    "See autocloud-run(1).";

struct Options {
  RunSettings run;
  bool no_requeue = false;
  double silence_s = 3;
  double start_timeout_s = 120;
};

std::string default_run_folder(const std::string& job) {
  return job.empty() ? "autocloud-run" : "autocloud-run-" + job;
}

void add_options(CLI::App& app, Options& options) {
  app.footer(kFooter);
  app.add_option("--run-dir",
                 options.run.run_folder,
                 "folder for events.jsonl, made if absent; default autocloud-run-<job id>");
  app.add_flag("--no-requeue",
               options.no_requeue,
               "on SIGTERM or at the time limit save and fail instead of asking for a requeue");
  app.add_option("--min-nodes",
                 options.run.policy.min_nodes,
                 "with fewer nodes left, requeue instead of going on")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--silence",
                 options.silence_s,
                 "seconds without a word after which a rank or node is lost")
      ->check(CLI::Range(1.0, 600.0))
      ->capture_default_str();
  app.add_option("--start-timeout",
                 options.start_timeout_s,
                 "seconds from mpirun's start until every rank must have reported")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  app.add_option(
      "--address",
      options.run.address,
      "IPv4 address at which the other nodes reach this one; default: what its name resolves to");
  app.add_option("mpirun", options.run.mpirun, "the mpirun line, after --")->required();
}

std::map<std::string, std::string> slurm_environment() {
  std::map<std::string, std::string> found;
  for (const char* name :
       {"SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"}) {
    if (const char* value = std::getenv(name); value != nullptr) {
      found[name] = value;
    }
  }
  return found;
}

// Slurm's word from the job's start. One without a limit has an end that is no time.
std::optional<Seconds> time_left() {
  const char* end = std::getenv("SLURM_JOB_END_TIME");
  const auto at =
      parse_integer("SLURM_JOB_END_TIME", end == nullptr ? "" : end, 0, std::int64_t{1} << 40);
  return at ? std::optional<Seconds>(WallTime(std::chrono::seconds(*at)) - wall_now())
            : std::nullopt;
}

// In Slurm the allocation, else this host alone.
Status find_nodes(RunSettings& run) {
  const std::string here = report_environment().node;
  if (const char* job = std::getenv("SLURM_JOB_ID"); job != nullptr) {
    run.job = job;
    ACB_TRY_ASSIGN(run.nodes, parse_allocation(slurm_environment()));
    if (run.address.empty()) {
      run.address = reachable_address(here);
    }
    run.left = time_left();
  } else {
    run.nodes = {{here, static_cast<int>(std::thread::hardware_concurrency()), 1}};
    run.address = "127.0.0.1";
  }
  return {};
}

Result<int> run_all(Options& options) {
  RunSettings& run = options.run;
  ACB_TRY(find_nodes(run));
  if (run.run_folder.empty()) {
    run.run_folder = default_run_folder(run.job);
  }
  std::error_code error;
  run.agent =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "autocloud-agent";
  if (error || !std::filesystem::exists(run.agent, error)) {
    return fail(ErrorCode::not_found,
                run.agent.string() + ": must stand beside autocloud-run, on every node");
  }
  if (options.no_requeue) {
    run.policy.no_requeue = kAsAsked;
  } else if (run.job.empty()) {
    run.policy.no_requeue = "not requeued: this is no Slurm job; start it again to go on";
  }
  run.policy.silence = Seconds(options.silence_s);
  run.policy.rank_start = Seconds(options.start_timeout_s);
  return supervise(run);
}

int tell_usage(const CLI::App& app, const CLI::ParseError& error) {
  for (const std::string& word : app.remaining()) {
    if (word.starts_with('-') && word != "--") {
      say("'" + word + "': no option of autocloud-run; the mpirun line stands behind --");
      return 2;
    }
  }
  return app.exit(error) == 0 ? 0 : 2;
}

int run_main(int argc, char** argv) {
  // Before any thread exists, so that all inherit it: the signals are read from a descriptor.
  const sigset_t taken = supervised_signals();
  ::sigprocmask(SIG_BLOCK, &taken, nullptr);

  Options options;
  CLI::App app(kAbout, "autocloud-run");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tell_usage(app, error);
  }
  const auto code = run_all(options);
  if (!code) {
    say(code.error().message);
    return kExitFailed;
  }
  return *code;
}

}  // namespace
}  // namespace acb::train

int main(int argc, char** argv) {
  try {
    return acb::train::run_main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "autocloud-run: %s\n", error.what());
    return acb::train::kExitFailed;
  }
}

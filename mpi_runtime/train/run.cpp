// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/train/run.h"

#include "base/text.h"
#include "mpi_runtime/agent/memory_folder.h"
#include "mpi_runtime/checkpoint/checkpoint.h"
#include "mpi_runtime/checkpoint/shared_folder.h"
#include "mpi_runtime/report/run_lock.h"
#include "mpi_runtime/train/trainer.h"

#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace acb::train {
namespace {

using Clock = std::chrono::steady_clock;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Refuses to start unless all ranks were given the same `what`.
Status check_same(Communicator& comm,
                  std::string_view what,
                  const std::string& mine,
                  const std::vector<std::string>& nodes) {
  ACB_TRY_ASSIGN(const std::vector<std::string> all, gather_texts(comm, mine));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      return fail(ErrorCode::invalid,
                  "train: " + std::string(what) + " on " + nodes[rank] + ": " + all[rank] +
                      ": must be that of " + nodes[0] + ", " + all[0]);
    }
  }
  return {};
}

/// This rank's share of the CPUs that it may use.
int share_of_cpus(const std::vector<std::string>& nodes, const std::string& node) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return 1;
  }
  const auto neighbours = std::count(nodes.begin(), nodes.end(), node);
  return std::max(1, CPU_COUNT(&allowed) / std::max(1, static_cast<int>(neighbours)));
}

CheckpointConfig checkpoint_config(const TrainConfig& config,
                                   const RunEnvironment& environment,
                                   const std::string& dataset_hash) {
  const auto& report = environment.report;
  return {.memory = report.memory.empty() ? "" : memory_folder(report.memory, report.node),
          .local = config.local,
          .shared = config.shared.empty() ? config.run_folder / "checkpoints" : config.shared,
          .memory_every = config.memory_every,
          .interval_s = config.interval_s,
          .keep = config.keep,
          .node = report.node,
          .run = environment.run,
          .start = std::max(1, report.start),
          .settings_hash = settings_hash(config),
          .settings = number_settings(config),
          .dataset_hash = dataset_hash};
}

class Run {
 public:
  Run(Communicator& comm,
      const TrainConfig& config,
      const RunEnvironment& environment,
      Reporter& reporter)
      : comm_(comm), config_(config), environment_(environment), reporter_(reporter) {}

  Status prepare();
  Result<RunEnd> train();

 private:
  Status open_checkpoints();
  Result<StepResult> one_step();
  Result<bool> told_to_leave();
  Result<RunEnd> leave();
  Result<RunEnd> end();
  void tell(const std::optional<Loaded>& loaded) const;
  [[nodiscard]] std::filesystem::path final_set() const { return config_.run_folder / "final"; }
  [[nodiscard]] bool first() const { return comm_.rank() == 0; }

  Communicator& comm_;
  TrainConfig config_;
  const RunEnvironment& environment_;
  Reporter& reporter_;
  UniqueFd lock_;  ///< of the first rank
  std::size_t nodes_ = 1;
  bool finished_ = false;  ///< by a start before this one
  std::optional<Dataset> data_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Checkpointer> checkpoints_;
};

Status Run::open_checkpoints() {
  ACB_TRY_ASSIGN(
      checkpoints_,
      Checkpointer::open(comm_, checkpoint_config(config_, environment_, data_->hash())));
  for (auto& section : trainer_->sections()) {
    ACB_TRY(checkpoints_->add(std::move(section)));
  }
  checkpoints_->on_saved(
      [this](const Saved& saved) { reporter_.saved(saved.level, saved.step, saved.seconds); });
  return {};
}

Status Run::prepare() {
  ACB_TRY(check_shared_folder(comm_, "run.folder", config_.run_folder, environment_.report.node));
  if (first()) {
    const bool supervised = !environment_.report.supervisor.empty();
    ACB_TRY_ASSIGN(
        lock_, lock_run_folder(config_.run_folder, supervised ? environment_.run : new_run_id()));
  }
  ACB_TRY_ASSIGN(const std::vector<std::string> nodes,
                 gather_texts(comm_, environment_.report.node));
  nodes_ = std::set<std::string>(nodes.begin(), nodes.end()).size();
  if (config_.threads == 0) {
    config_.threads = share_of_cpus(nodes, environment_.report.node);
  }
  ACB_TRY_ASSIGN(data_, Dataset::open(config_.data));
  ACB_TRY(check_same(comm_, "build of autocloud-train", build_id(), nodes));
  ACB_TRY(check_same(comm_, "settings", settings_hash(config_), nodes));
  ACB_TRY(check_same(comm_, "data", data_->hash(), nodes));
  ACB_TRY_ASSIGN(trainer_, Trainer::create(comm_, config_, *data_));
  ACB_TRY(open_checkpoints());
  // Another run's final checkpoint is refused like any other, and so never replaced.
  ACB_TRY_ASSIGN(const std::optional<Loaded> loaded, checkpoints_->load_newest(final_set()));
  finished_ = loaded && loaded->level == "folder";
  if (!finished_) {
    ACB_TRY(trainer_->start());
    checkpoints_->mark_inexact(trainer_->inexact_reason());
  }
  if (first()) {
    tell(loaded);
  }
  return {};
}

void Run::tell(const std::optional<Loaded>& loaded) const {
  if (finished_) {
    spdlog::info("train: {}: all {} steps are done", final_set().string(), loaded->step);
  } else {
    const std::string from =
        loaded ? "step " + std::to_string(loaded->step) + " (" + loaded->level + ")" : "the start";
    spdlog::info("train: {} ranks on {} nodes, {} slots, {} threads each, {}, from {}",
                 comm_.size(),
                 nodes_,
                 slots_of(config_),
                 config_.threads,
                 name_of(trainer_->isa()),
                 from);
  }
  const std::string& inexact = checkpoints_->inexact_reason();
  std::printf("exact: %s\n", inexact.empty() ? "yes" : ("no (" + inexact + ")").c_str());
  std::fflush(stdout);
}

Result<StepResult> Run::one_step() {
  const auto begun = Clock::now();
  ACB_TRY_ASSIGN(const StepResult result, trainer_->step());
  reporter_.step(result.step, result.loss);
  if (first()) {
    const std::chrono::duration<double> took = Clock::now() - begun;
    std::printf("step %lld/%lld loss %.4f tokens/s %.0f nodes %zu%s\n",
                static_cast<long long>(result.step),
                static_cast<long long>(config_.steps),
                result.loss,
                static_cast<double>(trainer_->tokens_per_step()) / took.count(),
                nodes_,
                result.skipped ? " skipped" : "");
    std::fflush(stdout);
  }
  return result;
}

/// The order reaches ranks at different moments; what the first of them knows counts for all.
Result<bool> Run::told_to_leave() {
  const bool supervised = reporter_.connected();
  const bool late = !supervised && environment_.end && Clock::now() >= *environment_.end;
  const bool ordered = reporter_.save_and_exit().has_value();
  const bool signalled = environment_.told_to_stop != nullptr && environment_.told_to_stop->load();
  ACB_TRY_ASSIGN(const std::int64_t agreed, largest(comm_, late || ordered || signalled ? 1 : 0));
  return agreed != 0;
}

Result<RunEnd> Run::leave() {
  const auto order = reporter_.save_and_exit();
  const std::string reason = order ? order->reason : "";
  const std::int64_t notice = reason.find("notice") != std::string::npos ? 1 : 0;
  ACB_TRY_ASSIGN(const std::int64_t agreed, largest(comm_, notice));
  const std::int64_t step = trainer_->steps_done();
  ACB_TRY(checkpoints_->save_now(step, agreed != 0 ? SaveReason::notice : SaveReason::leaving));
  ACB_TRY(checkpoints_->finish());
  if (first()) {
    spdlog::info("train: saved at step {}, leaving{}", step, reason.empty() ? "" : ": " + reason);
  }
  return RunEnd::left;
}

Result<RunEnd> Run::end() {
  if (!finished_) {
    ACB_TRY(checkpoints_->save_to(final_set(), trainer_->steps_done()));
    ACB_TRY(checkpoints_->finish());
  }
  ACB_TRY(reporter_.done(trainer_->steps_done()));
  return RunEnd::done;
}

Result<RunEnd> Run::train() {
  while (trainer_->steps_done() < config_.steps) {
    ACB_TRY_ASSIGN(const StepResult result, one_step());
    ACB_TRY(checkpoints_->after_step(result.step));
    ACB_TRY_ASSIGN(const bool leaving, told_to_leave());
    if (leaving && result.step < config_.steps) {
      return leave();
    }
  }
  return end();
}

}  // namespace

RunEnvironment run_environment(const TrainConfig& config) {
  RunEnvironment environment;
  environment.report = report_environment();
  environment.run = variable("AUTOCLOUD_RUN");
  if (environment.run.empty()) {
    environment.run = "local";
  }
  const std::chrono::duration<double> margin(config.leave_before_s);
  const auto in = [&](std::chrono::duration<double> left) {
    environment.end = Clock::now() + std::chrono::duration_cast<Clock::duration>(left - margin);
  };
  const auto job_end = parse_integer("SLURM_JOB_END_TIME",
                                     variable("SLURM_JOB_END_TIME"),
                                     0,
                                     std::int64_t{1} << 40);  // an unlimited job says more
  if (config.time_limit_s > 0) {
    in(std::chrono::duration<double>(config.time_limit_s));
  } else if (job_end) {
    in(WallTime(std::chrono::seconds(*job_end)) - wall_now());
  }
  return environment;
}

Result<RunEnd> run_training(Communicator& comm,
                            const TrainConfig& config,
                            const RunEnvironment& environment,
                            Reporter& reporter) {
  Run run(comm, config, environment, reporter);
  ACB_TRY(run.prepare());
  return run.train();
}

}  // namespace acb::train

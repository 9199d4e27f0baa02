// SPDX-License-Identifier: Apache-2.0
// autocloud-train: trains a GPT-2 on every rank that mpirun starts.
#include "mpi_runtime/train/run.h"

#include <CLI/CLI.hpp>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace acb::train {
namespace {

constexpr int kUsage = 2;
constexpr int kRequeue = 85;  // as autocloud-run: saved, to be started again

std::atomic<bool> told_to_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void stop_on_sigterm() {
  struct sigaction action {};
  action.sa_handler = [](int) { told_to_stop = true; };
  sigaction(SIGTERM, &action, nullptr);
}

Result<TrainConfig> merge(const std::string& file, const RawSettings& flags) {
  TrainConfig config;
  if (!file.empty()) {
    ACB_TRY_ASSIGN(const RawSettings raw, read_toml(file));
    ACB_TRY(apply_settings(config, train_settings(), raw, file));
  }
  ACB_TRY(apply_settings(config, train_settings(), flags, "command line"));
  ACB_TRY(check_config(config));
  return config;
}

Result<int> train(const TrainConfig& config) {
  const RunEnvironment environment = [&] {
    RunEnvironment read = run_environment(config);
    read.told_to_stop = &told_to_stop;
    return read;
  }();
  ACB_TRY_ASSIGN(const auto comm, make_communicator());
  const auto run = [&]() -> Result<int> {
    ACB_TRY_ASSIGN(const auto reporter,
                   Reporter::connect(environment.report, comm->rank(), comm->size()));
    // MPI_Init may have put a handler of its own in place.
    stop_on_sigterm();
    const auto end = run_training(*comm, config, environment, *reporter);
    if (!end) {
      const ErrorCode code = end.error().code;
      if (code == ErrorCode::invalid || code == ErrorCode::corrupt || code == ErrorCode::denied) {
        reporter->give_up(end.error().message);
      }
      return tl::unexpected(end.error());
    }
    // A supervisor has heard how it ended, and reads nothing into exit codes.
    return *end == RunEnd::done || reporter->connected() ? 0 : kRequeue;
  };
  auto ended = run();
  if (!ended && comm->size() > 1) {
    // The other ranks may be waiting for this one, and so would MPI_Finalize. Dying without it is
    // what makes mpirun end them.
    spdlog::error("{}", ended.error().message);
    std::fflush(nullptr);
    std::_Exit(1);
  }
  return ended;
}

int run_main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("autocloud-train"));
  spdlog::set_pattern("%v");
  CLI::App app("Trains a GPT-2 on text or tokens. Weights do not depend on the number of ranks.",
               "autocloud-train");
  app.footer("example: mpirun -n 4 autocloud-train --config train.toml --train-steps 200");
  std::string file;
  app.add_option("--config", file, "TOML file with the settings below; flags override it");
  RawSettings flags;
  add_flags(app, flags_of(train_settings()), flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  const auto config = merge(file, flags);
  if (!config) {
    spdlog::error("autocloud-train: {}", config.error().message);
    return config.error().code == ErrorCode::invalid ? kUsage : 1;
  }
  const auto ended = train(*config);
  if (!ended) {
    spdlog::error("{}", ended.error().message);
    return 1;
  }
  return *ended;
}

}  // namespace
}  // namespace acb::train

int main(int argc, char** argv) {
  try {
    return acb::train::run_main(argc, argv);
  } catch (const std::exception& error) {
    // Without MPI_Finalize, which would wait for the other ranks: mpirun ends them.
    std::fprintf(stderr, "autocloud-train: %s\n", error.what());
    std::fflush(nullptr);
    std::_Exit(1);
  }
}

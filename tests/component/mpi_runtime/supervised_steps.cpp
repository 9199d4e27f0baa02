// SPDX-License-Identifier: Apache-2.0
// A job small enough to watch: ranks agree on a sum per step, keep the step number in a file, and
// go on from it. Its arguments make it fail in the ways that autocloud-run has to live with.
#include "mpi_runtime/agent/memory_folder.h"
#include "mpi_runtime/report/reporter.h"

#include <CLI/CLI.hpp>
#include <mpi.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace {

struct Options {
  std::filesystem::path folder;
  long steps = 60;
  long step_ms = 20;
  long leave_at = 0;   // exit with 0 without "done", on the first start only
  long crash_at = -1;  // exit with 7 at this step, on every start
};

struct Rank {
  Options options;
  int number = 0;
  int size = 1;
  acb::train::ReportEnvironment env;
};

// As a whole or not at all, even if killed between the two.
void replace_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::path next = path;
  next += ".next";
  std::ofstream(next) << text;
  std::filesystem::rename(next, path);
}

long read_step(const Rank& rank) {
  long step = 0;
  if (rank.number == 0) {
    std::ifstream(rank.options.folder / "step") >> step;
  }
  MPI_Bcast(&step, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return step;
}

void save(const Rank& rank, long step, acb::train::Reporter& reporter) {
  if (rank.number == 0) {
    replace_file(rank.options.folder / "step", std::to_string(step));
    reporter.saved("shared", step, 0.01);
  }
}

int run(const Rank& rank, acb::train::Reporter& reporter) {
  const Options& options = rank.options;
  for (long step = read_step(rank) + 1; step <= options.steps; ++step) {
    if (step == options.crash_at) {
      std::_Exit(7);
    }
    if (step == options.leave_at && rank.env.start == 1) {
      MPI_Finalize();
      return 0;
    }
    int leaving = reporter.save_and_exit() ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &leaving, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    std::this_thread::sleep_for(std::chrono::milliseconds(options.step_ms));
    reporter.step(step, 1.0 / static_cast<double>(step));
    save(rank, step, reporter);
    if (leaving != 0) {
      MPI_Finalize();
      return 0;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const bool done = reporter.done(options.steps).has_value();
  MPI_Finalize();
  return done ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("steps under autocloud-run, for its tests", "supervised-steps");
  app.add_option("folder", options.folder)->required();
  app.add_option("--steps", options.steps);
  app.add_option("--step-ms", options.step_ms);
  app.add_option("--leave-at", options.leave_at);
  app.add_option("--crash-at", options.crash_at);
  CLI11_PARSE(app, argc, argv);

  MPI_Init(&argc, &argv);
  Rank rank{options, 0, 1, acb::train::report_environment()};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank.number);
  MPI_Comm_size(MPI_COMM_WORLD, &rank.size);
  auto reporter = acb::train::Reporter::connect(rank.env, rank.number, rank.size);
  if (!reporter) {
    std::fprintf(stderr, "%s\n", reporter.error().message.c_str());
    return 1;
  }
  const bool has_memory =
      rank.env.memory.empty() ||
      std::filesystem::is_directory(acb::train::memory_folder(rank.env.memory, rank.env.node));
  std::ofstream(options.folder / ("memory-" + std::to_string(rank.number)))
      << (has_memory ? "there" : "missing");
  replace_file(options.folder / ("pid-" + std::to_string(rank.number)), std::to_string(::getpid()));
  return run(rank, **reporter);
}

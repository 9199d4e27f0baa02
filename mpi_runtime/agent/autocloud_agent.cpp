// SPDX-License-Identifier: Apache-2.0
// autocloud-agent: started by autocloud-run on every node of a run. All it needs is in its
// environment, so that no secret stands on a command line.
#include "base/text.h"
#include "mpi_runtime/agent/agent.h"
#include "mpi_runtime/report/reporter.h"

#include <CLI/CLI.hpp>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace acb::train {
namespace {

int run_main(int argc, char** argv) {
  CLI::App app(
      "The agent of a node under autocloud-run, which starts it. It reads AUTOCLOUD_SUPERVISOR,\n"
      "AUTOCLOUD_SECRET, AUTOCLOUD_RUN and AUTOCLOUD_MEMORY.\n"
      "Example: autocloud-run -- mpirun autocloud-train --config gpt2.toml",
      "autocloud-agent");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_default_logger(spdlog::stderr_color_mt("autocloud-agent"));

  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGTERM);
  sigaddset(&taken, SIGINT);
  sigaddset(&taken, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &taken, nullptr);
  const int signal_fd = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);

  const auto env = report_environment();
  const char* run = std::getenv("AUTOCLOUD_RUN");
  if (env.supervisor.empty() || env.secret.empty() || run == nullptr) {
    spdlog::error(
        "AUTOCLOUD_SUPERVISOR, AUTOCLOUD_SECRET or AUTOCLOUD_RUN is not set: "
        "autocloud-run starts this program");
    return 2;
  }
  AgentSettings settings;
  settings.supervisor = env.supervisor;
  settings.secret = env.secret;
  settings.run = run;
  settings.memory = env.memory;
  settings.node = env.node;
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job != nullptr && std::getenv("AUTOCLOUD_BURST") != nullptr) {
    settings.job = job;
  }
  if (const auto ended = run_agent(settings, signal_fd); !ended) {
    spdlog::error("{}", ended.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace acb::train

int main(int argc, char** argv) {
  try {
    return acb::train::run_main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "autocloud-agent: %s\n", error.what());
    return 1;
  }
}

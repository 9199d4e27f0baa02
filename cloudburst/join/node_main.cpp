// SPDX-License-Identifier: Apache-2.0
// autocloud-node: runs on a rented node before slurmd does.
#include "cloudburst/join/node_check.h"
#include "cloudburst/join/node_join.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace acb::cloud {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  autocloud-node join --url https://ctl:8543 --ca-file join-ca.pem --secret-file secret \\\n"
    "      --instance i-17 --out /etc/autocloud-burst/joined\n"
    "  autocloud-node check --url https://ctl:8543 --ca-file join-ca.pem --gpus 8 \\\n"
    "      --conf-server ctl\n";

struct Arguments {
  JoinOptions join;
  std::string secret_file;
  long deadline_s = 120;
  CheckOptions check;
};

void describe_join(CLI::App& app, Arguments& arguments) {
  JoinOptions& join = arguments.join;
  app.add_option("--url", join.url, "the join service, https://HOST:PORT")->required();
  app.add_option("--ca-file", join.ca_file, "its certificate, PEM")->required();
  app.add_option("--secret-file", arguments.secret_file, "one-time secret; the file must be 0600")
      ->required();
  app.add_option("--out", join.out, "folder for munge.key (0400) and node.json")->required();
  app.add_option("--instance", join.instance, "the cloud's id of this instance");
  app.add_option("--rented-mark", join.rented_mark, "file whose existence says: rented")
      ->capture_default_str();
  app.add_option("--deadline", arguments.deadline_s, "seconds until it gives up")
      ->capture_default_str()
      ->check(CLI::Range(1L, 3600L));
}

void describe_check(CLI::App& app, Arguments& arguments) {
  CheckOptions& check = arguments.check;
  app.add_option("--url", check.url, "join service that tells the controller's time");
  app.add_option("--ca-file", check.ca_file, "its certificate, PEM");
  app.add_option("--gpus", check.gpus, "least number of GPUs")->check(CLI::Range(0, 1024));
  app.add_option("--gpu-devices", check.gpu_devices, "shell pattern of their device files")
      ->capture_default_str();
  app.add_option("--memory-mib", check.memory_mib, "least memory")->check(CLI::Range(0, 1 << 30));
  app.add_option("--conf-server", check.conf_server, "slurmctld's HOST[:PORT]");
}

int join(Arguments& arguments) {
  arguments.join.deadline = std::chrono::seconds(arguments.deadline_s);
  const auto secret = Secret::from_file(arguments.secret_file);
  if (!secret) {
    spdlog::error("{}", secret.error().message);
    return EXIT_FAILURE;
  }
  if (auto joined = join_cluster(arguments.join, *secret); !joined) {
    spdlog::error("{}", joined.error().message);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

int check(const Arguments& arguments) {
  const std::vector<CheckResult> results = check_node(arguments.check);
  const Json report = check_report(results);
  std::printf("%s\n", dump_json(report).c_str());
  for (const CheckResult& result : results) {
    if (!result.ok) {
      spdlog::error("check: {}: {}: must be {}", result.name, result.found, result.wanted);
    }
  }
  return report["ok"] ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("autocloud-node"));
  // The secret and the munge key pass through this process.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  CLI::App app("Gets a rented node ready for Slurm: lets it join, and checks it before slurmd.");
  app.footer(kExamples);
  app.require_subcommand(1);
  Arguments arguments;
  CLI::App* join_command =
      app.add_subcommand("join", "show the one-time secret; write down what the daemon gives");
  CLI::App* check_command = app.add_subcommand(
      "check", "print as JSON whether clock, GPUs, memory and controller are as they must be");
  describe_join(*join_command, arguments);
  describe_check(*check_command, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : 2;
  }
  return join_command->parsed() ? join(arguments) : check(arguments);
}

}  // namespace
}  // namespace acb::cloud

int main(int argc, char** argv) {
  try {
    return acb::cloud::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "autocloud-node: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

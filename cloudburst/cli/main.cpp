// SPDX-License-Identifier: Apache-2.0
// autocloud: what the daemon knows, for users and admins.
#include "cloudburst/cli/views.h"
#include "cloudburst/config/config.h"
#include "cloudburst/control/client.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

namespace acb::cloud {
namespace {

constexpr std::chrono::milliseconds kLimit{10000};

constexpr const char* kExamples =
    "Examples:\n"
    "  autocloud status 1234      why job 1234 waits, its nodes and its cost so far\n"
    "  autocloud leases --json    everything rented, for scripts\n";

struct Arguments {
  std::string config = kConfigPath;
  std::optional<std::int64_t> job;
  std::string lease;
  bool json = false;
};

// A user's host may have no autocloud.toml, or one that is for the daemon's eyes: the default place
// of the socket serves then. A file that was named must be sound.
Result<std::filesystem::path> socket_path(const Arguments& arguments) {
  const auto config = load_config(arguments.config);
  if (config) {
    return config->socket();
  }
  const bool absent =
      config.error().code == ErrorCode::not_found || config.error().code == ErrorCode::denied;
  if (arguments.config == kConfigPath && absent) {
    return Config{}.socket();
  }
  return tl::unexpected<Error>(config.error());
}

Result<Json> ask(const Arguments& arguments, const char* op) {
  ACB_TRY_ASSIGN(const std::filesystem::path socket, socket_path(arguments));
  Json request{{"op", op}};
  if (std::string_view(op) == "status") {
    request["job"] = arguments.job ? Json(*arguments.job) : Json();
  }
  if (std::string_view(op) == "close") {
    request["lease"] = arguments.lease;
  }
  return control_call(socket, request, kLimit);
}

Result<std::string> view(const std::string& command, const Arguments& arguments) {
  ACB_TRY_ASSIGN(Json reply, ask(arguments, command == "cost" ? "leases" : command.c_str()));
  if (command == "cost") {
    reply = cost_of_leases(reply);
  }
  if (arguments.json) {
    return dump_json(reply, 2) + "\n";
  }
  if (command == "status") {
    return status_view(reply, wall_now());
  }
  if (command == "nodes") {
    return nodes_view(reply);
  }
  if (command == "close") {
    return "closed: " + arguments.lease + "\n";
  }
  return command == "leases" ? leases_view(reply) : cost_view(reply);
}

int run(int argc, char** argv) {
  CLI::App app("Shows what is rented for whom, and why a job waits for it.");
  app.footer(kExamples);
  app.require_subcommand(1);
  Arguments arguments;
  app.add_option("--config", arguments.config, "the configuration file")->capture_default_str();
  app.set_version_flag("--version", ACB_VERSION);
  CLI::App* status = app.add_subcommand("status", "bursts: state, reason, nodes, cost so far");
  status->add_option("JOB", arguments.job, "only this job")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4294967295}));
  app.add_subcommand("nodes", "the cloud nodes of this cluster and who has them");
  app.add_subcommand("leases", "every node rented, from when to when, and its bill");
  app.add_subcommand("cost", "what was billed, by job");
  CLI::App* close = app.add_subcommand(
      "close", "for root: gives up a lease whose machine the cloud does not know");
  close->add_option("LEASE", arguments.lease, "as autocloud leases --json names it")->required();
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    command->add_flag("--json", arguments.json, "JSON instead of text");
    command->fallthrough();
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const auto words = app.remaining(); app.get_subcommands().empty() && !words.empty()) {
      std::fprintf(stderr,
                   "autocloud: '%s': must be one of status, nodes, leases, cost, close\n",
                   words.front().c_str());
      return 2;
    }
    return app.exit(error) == 0 ? EXIT_SUCCESS : 2;
  }
  const auto text = view(app.get_subcommands().front()->get_name(), arguments);
  if (!text) {
    std::fprintf(stderr, "autocloud: %s\n", text.error().message.c_str());
    return EXIT_FAILURE;
  }
  const bool shown = std::fputs(text->c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return shown ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace acb::cloud

int main(int argc, char** argv) {
  try {
    return acb::cloud::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "autocloud: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

// SPDX-License-Identifier: Apache-2.0
// autocloudd: rents nodes for bursts and gives them back. Runs in the foreground until SIGTERM.
#include "cloudburst/config/config.h"
#include "cloudburst/control/server.h"
#include "cloudburst/daemon/check.h"
#include "cloudburst/daemon/compose.h"
#include "cloudburst/daemon/harden.h"
#include "cloudburst/daemon/reconciler.h"
#include "cloudburst/join/join_server.h"
#include "cloudburst/slurm/hostlist.h"
#include "cloudburst/slurm/slurm_client.h"

#include <CLI/CLI.hpp>

#include <pthread.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

namespace acb::cloud {
namespace {

Result<Policy> policy_of(const Config& config) {
  Policy policy;
  policy.cluster = config.cluster;
  policy.default_gpu = config.gpu_types.front();
  ACB_TRY_ASSIGN(policy.default_market, parse_market("burst.market", config.market));
  policy.gpus_per_node = config.gpus_per_node;
  if (!config.max_price_per_hour.empty()) {
    ACB_TRY_ASSIGN(policy.max_price,
                   parse_money("provider.max_price_per_hour", config.max_price_per_hour));
  }
  policy.idle_release = std::chrono::seconds(config.idle_release_s);
  policy.boot_timeout = std::chrono::seconds(config.boot_timeout_s);
  return policy;
}

Result<std::string> munge_key_of(const Config& config) {
  if (config.munge_key_file.empty()) {
    return std::string();
  }
  auto key = read_file(config.munge_key_file, 65536);
  if (!key) {
    return fail(key.error().code,
                "join.munge_key_file: " + key.error().message +
                    "; give a copy that the daemon's user can read, or \"\" where nodes bring "
                    "their own");
  }
  return key;
}

std::string join_address_of(const Config& config, int port) {
  if (!config.join_address.empty()) {
    return config.join_address;
  }
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + ":" + std::to_string(port);
}

Status make_places(const Config& config) {
  const mode_t old_mask = umask(0077);
  for (const auto& folder : {config.state_folder, config.inbox()}) {
    if (auto made = make_folders(folder); !made) {
      umask(old_mask);
      return made;
    }
  }
  umask(0022);
  auto made = make_folders(config.run_folder);
  umask(old_mask);
  return made;
}

/// Blocked in all threads; the returned thread waits for them.
std::jthread on_end_signal(const std::function<void()>& then) {
  return std::jthread([then](const std::stop_token& stop) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    const timespec moment{0, 100'000'000};
    while (!stop.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &moment) > 0) {
        then();
        return;
      }
    }
  });
}

void block_end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);  // NOLINT: a constant that is a cast in the system's header
}

/// For the hooks, should the file become unreadable.
void keep_copy(const Config& config, const std::string& path) {
  const auto kept = read_file(path).and_then(
      [&](const std::string& text) { return write_file(config.last_good(), text, 0600); });
  if (!kept) {
    spdlog::warn("{}", kept.error().message);
  }
}

Status serve(const Config& config, const std::string& path, Secret key) {
  ACB_TRY_ASSIGN(Policy policy, policy_of(config));
  ACB_TRY_ASSIGN(const std::vector<std::string> nodes, expand_hosts(config.cloud_nodes));
  ACB_TRY(check_template(config));
  ACB_TRY(make_places(config));
  ACB_TRY_ASSIGN(const UniqueFd lock, lock_single(config.state_folder / "lock"));
  keep_copy(config, path);
  ACB_TRY_ASSIGN(std::string munge_key, munge_key_of(config));
  ACB_TRY_ASSIGN(Ledger ledger, Ledger::open(config.ledger()));
  Provider::Options options;
  options.url = config.provider_url;
  options.ca_file = config.ca_file;
  // Shorter than a client would: five tries have to end within a minute or so.
  options.call_limit = std::chrono::seconds(10);
  ACB_TRY_ASSIGN(Provider provider, Provider::open(options, std::move(key)));
  SlurmClient slurm = SlurmClient::open(nodes);

  Reconciler reconciler(config, std::move(policy), std::move(ledger), std::move(provider));
  ACB_TRY_ASSIGN(
      const std::unique_ptr<JoinServer> join,
      JoinServer::start(config.join_listen,
                        config.state_folder / "join.pem",
                        [&](const JoinRequest& request) { return reconciler.join(request); }));
  const JoinPlace place{"https://" + join_address_of(config, join->port()), join->ca_base64()};
  ACB_TRY(reconciler.start(std::move(slurm), place, std::move(munge_key)));
  ACB_TRY_ASSIGN(const std::unique_ptr<ControlServer> control,
                 ControlServer::open(config.socket(), [&](const Json& request, const Peer& peer) {
                   return reconciler.answer(request, peer);
                 }));
  const std::jthread signals = on_end_signal([&] { reconciler.stop(); });
  spdlog::info("autocloudd: ready: {} nodes, joining at {}", nodes.size(), place.url);
  reconciler.run();
  spdlog::info("autocloudd: ended");
  return {};
}

Status check(const Config& config, Secret key) {
  ACB_TRY_ASSIGN(const Policy policy, policy_of(config));
  Findings found = check_all(config, policy, std::move(key));
  if (const auto munge_key = munge_key_of(config); !munge_key) {
    found.faults.push_back(munge_key.error().message);
  }
  for (const std::string& fact : found.facts) {
    std::printf("%s\n", fact.c_str());
  }
  for (const std::string& fault : found.faults) {
    std::printf("fault: %s\n", fault.c_str());
  }
  if (!found.faults.empty()) {
    return fail(ErrorCode::invalid, std::to_string(found.faults.size()) + " faults");
  }
  return {};
}

int run(int argc, char** argv) {
  CLI::App app{
      "Rents nodes for Slurm's bursts and gives them back. Runs until SIGTERM, as SlurmUser.",
      "autocloudd"};
  std::string path = kConfigPath;
  app.add_option("--config", path, "configuration file")->capture_default_str();
  bool only_check = false;
  app.add_flag(
      "--check",
      only_check,
      "say whether configuration, key, cloud and Slurm fit, and what may be rented; change "
      "nothing");
  app.footer("Example:\n  autocloudd --config /etc/autocloud-burst/autocloud.toml --check");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("autocloudd"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  spdlog::flush_on(spdlog::level::info);

  const auto work = [&]() -> Status {
    ACB_TRY(forbid_dumps());
    ACB_TRY_ASSIGN(const Config config, load_config(path));
    ACB_TRY_ASSIGN(Secret key, load_cloud_key(config.key_file));
    if (only_check) {
      return check(config, std::move(key));
    }
    block_end_signals();
    return serve(config, path, std::move(key));
  };
  if (const auto done = work(); !done) {
    spdlog::error("{}", done.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace acb::cloud

int main(int argc, char** argv) {
  int code = 1;
  try {
    code = acb::cloud::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "autocloudd: %s\n", error.what());
  }
  // Threads that hang in a call are not waited for, so no destructor of a global may run.
  std::fflush(nullptr);
  std::_Exit(code);
}

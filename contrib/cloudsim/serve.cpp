// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/serve.h"

#include "cloudsim/control.h"
#include "cloudsim/http_edge.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace acb::sim {

namespace {

Result<Scenario> scenario_of(const ServeOptions& options) {
  ACB_TRY_ASSIGN(const RawSettings raw, read_toml(options.scenario));
  ACB_TRY_ASSIGN(Scenario scenario, parse_scenario(options.scenario.string(), raw));
  if (!options.boot.empty()) {
    scenario.boot_command = options.boot;
  }
  if (!options.destroy.empty()) {
    scenario.destroy_command = options.destroy;
  }
  return scenario;
}

Result<std::string> api_key_of(const ServeOptions& options) {
  if (options.api_key_file.empty()) {
    return std::string();
  }
  ACB_TRY_ASSIGN(const std::string text, read_file(options.api_key_file, 4096));
  std::string key(trim(text));
  if (key.empty()) {
    return fail(ErrorCode::invalid, "serve: '" + options.api_key_file.string() + "': is empty");
  }
  return key;
}

std::string host_of(const ServeOptions& options, const Listener& api) {
  if (!options.advertise.empty()) {
    return options.advertise;
  }
  if (api.address != "0.0.0.0") {
    return api.address;
  }
  std::string name(256, '\0');
  ::gethostname(name.data(), name.size() - 1);
  return name.c_str();
}

std::string url_of(const char* scheme, const std::string& host, int port) {
  return std::string(scheme) + "://" + host + ":" + std::to_string(port);
}

sigset_t block_ends() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return ends;
}

}  // namespace

Status serve(const ServeOptions& options) {
  const sigset_t ends = block_ends();
  ACB_TRY_ASSIGN(Scenario scenario, scenario_of(options));
  ACB_TRY_ASSIGN(std::string key, api_key_of(options));
  ACB_TRY_ASSIGN(const Listener api_listener, parse_listener("--listen", options.listen));
  Listener metadata_listener{api_listener.address, 0};
  if (!options.metadata.empty()) {
    ACB_TRY_ASSIGN(metadata_listener, parse_listener("--metadata", options.metadata));
  }
  ACB_TRY(make_folders(options.state));
  const std::filesystem::path state = std::filesystem::absolute(options.state);
  ACB_TRY_ASSIGN(Guard guard, Guard::start());
  ACB_TRY_ASSIGN(const auto edge,
                 HttpEdge::bind(api_listener, metadata_listener, options.cert, options.key));
  const std::string host = host_of(options, api_listener);
  const std::string metadata_url = url_of("http", host, edge->metadata_port());
  ACB_TRY_ASSIGN(const auto objects, ObjectStore::open(state / "objects"));
  ACB_TRY_ASSIGN(const auto simulator,
                 Simulator::open(std::move(scenario), state, metadata_url, guard));
  Api api(*simulator, *objects, std::move(key));
  ACB_TRY_ASSIGN(auto control, ControlSocket::open(state / "control.sock", *simulator));
  edge->serve(api);
  const std::string endpoint = dump_json({{"url", url_of("https", host, edge->api_port())},
                                          {"metadata_url", metadata_url},
                                          {"pid", ::getpid()}});
  ACB_TRY(write_file(state / "endpoint.json", endpoint + "\n"));
  std::printf("%s\n", endpoint.c_str());
  std::fflush(stdout);

  int signal = 0;
  while (::sigwait(&ends, &signal) != 0) {
  }
  spdlog::info("cloudsim: giving everything back");
  simulator->shutdown();
  edge->stop();
  control.reset();
  return {};
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "server.h"

#include "base/files.h"
#include "base/process.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

namespace acb::sim {

namespace {

constexpr std::chrono::seconds kLimit{10};

std::pair<std::string, int> place_of(const std::string& url) {
  const std::size_t colon = url.rfind(':');
  const std::size_t host = url.find("//") + 2;
  return {url.substr(host, colon - host), std::stoi(url.substr(colon + 1))};
}

}  // namespace

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 250; ++i) {
    if (holds()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

Server::Server(const std::string& scenario, const std::string& boot, const std::string& destroy) {
  std::string name = "/tmp/cloudsim-test-XXXXXX";
  folder_ = ::mkdtemp(name.data());
  const auto made = run_process({{"openssl",
                                  "req",
                                  "-x509",
                                  "-newkey",
                                  "ec",
                                  "-pkeyopt",
                                  "ec_paramgen_curve:prime256v1",
                                  "-nodes",
                                  "-days",
                                  "1",
                                  "-keyout",
                                  folder_ / "key.pem",
                                  "-out",
                                  folder_ / "cert.pem",
                                  "-subj",
                                  "/CN=localhost",
                                  "-addext",
                                  "subjectAltName=IP:127.0.0.1"}},
                                kLimit);
  EXPECT_TRUE(made && made->exit_code == 0);
  EXPECT_TRUE(write_file(folder_ / "scenario.toml", scenario));
  EXPECT_TRUE(write_file(folder_ / "api-key", std::string(kTestKey) + "\n"));
  const auto pid = spawn({{ACB_CLOUDSIM,
                           "serve",
                           "--scenario",
                           folder_ / "scenario.toml",
                           "--cert",
                           folder_ / "cert.pem",
                           "--key",
                           folder_ / "key.pem",
                           "--state",
                           folder_ / "state",
                           "--api-key-file",
                           folder_ / "api-key",
                           "--boot",
                           boot,
                           "--destroy",
                           destroy}});
  EXPECT_TRUE(pid);
  pid_ = pid.value_or(-1);
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(folder_ / "state/endpoint.json"); }));
  endpoint_ = Json::parse(file("endpoint.json"));
}

Server::~Server() {
  if (pid_ > 0) {
    end(SIGTERM);
  }
  std::filesystem::remove_all(folder_);
}

int Server::end(int signal) {
  const pid_t pid = std::exchange(pid_, -1);
  ::kill(pid, signal);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return exit_code_of(status);
}

std::unique_ptr<httplib::SSLClient> Server::client() const {
  const auto [host, port] = place_of(endpoint_["url"]);
  auto made = std::make_unique<httplib::SSLClient>(host, port);
  made->set_ca_cert_path((folder_ / "cert.pem").c_str());
  made->enable_server_certificate_verification(true);
  made->set_bearer_token_auth(kTestKey);
  made->set_read_timeout(5);
  return made;
}

Json Server::get(const std::string& path) const {
  const auto reply = client()->Get(path);
  return reply ? Json::parse(reply->body, nullptr, false) : Json(nullptr);
}

httplib::Result Server::allocate(const Json& more, const std::string& key) const {
  Json body = {{"gpu_type", "v100"}, {"count", 1}, {"duration_min", 0}};
  if (more.is_object()) {
    body.update(more);
  }
  httplib::Headers headers;
  if (!key.empty()) {
    headers.emplace("Idempotency-Key", key);
  }
  return client()->Post("/v1/gpu/allocate", headers, body.dump(), "application/json");
}

httplib::Result Server::metadata(const std::string& instance_id) const {
  const auto [host, port] = place_of(endpoint_["metadata_url"]);
  return httplib::Client(host, port).Get("/" + instance_id + "/v1/metadata/interruption");
}

std::string Server::run(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), ACB_CLOUDSIM);
  arguments.insert(arguments.end(), {"--state", folder_ / "state"});
  const auto done = run_process({std::move(arguments)}, kLimit);
  EXPECT_TRUE(done && done->exit_code == 0) << (done ? done->output : done.error().message);
  return done ? done->output : std::string();
}

std::string Server::file(const std::string& name) const {
  return read_file(folder_ / "state" / name).value_or("");
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/join/join_server.h"

#include "base/json.h"
#include "base/text.h"
#include "cloudburst/join/address_limit.h"
#include "cloudburst/join/connection_watch.h"
#include "cloudburst/join/identity.h"

#include <httplib.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace acb::cloud {

namespace {

constexpr std::size_t kLongestRequest = 4096;
// A silent client holds one of the threads until its read times out. Enough that one address, or a
// few, cannot hold them all.
constexpr std::size_t kThreads = 128;
constexpr int kReadLimitS = 5;

struct Listen {
  std::string host;
  int port = 0;
};

Result<Listen> parse_listen(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Listen listen;
  if (colon == std::string::npos || colon == 0) {
    return fail(ErrorCode::invalid, "join.listen: '" + text + "': must be ADDRESS:PORT");
  }
  listen.host = text.substr(0, colon);
  if (listen.host.starts_with('[') && listen.host.ends_with(']')) {
    listen.host = listen.host.substr(1, listen.host.size() - 2);
  }
  ACB_TRY_ASSIGN(const std::int64_t port,
                 parse_integer("join.listen: port", text.substr(colon + 1), 0, 65535));
  listen.port = static_cast<int>(port);
  return listen;
}

int status_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::denied:
    case ErrorCode::not_found:
    case ErrorCode::invalid:
      return 403;
    case ErrorCode::exists:
      return 409;
    case ErrorCode::exhausted:
    case ErrorCode::rate_limited:
    case ErrorCode::timeout:
    case ErrorCode::unavailable:
    case ErrorCode::corrupt:
    case ErrorCode::internal:
      return 503;
  }
  return 503;
}

void reply(httplib::Response& response, int status, const Json& body) {
  response.status = status;
  response.set_content(dump_json(body), "application/json");
}

void refuse(httplib::Response& response, int status, std::string_view message) {
  reply(response, status, {{"error", {{"message", message}}}});
}

// The node's own word goes into our log: one short, printable piece.
std::string tidy(std::string text) {
  constexpr std::size_t kLongest = 128;
  text.resize(std::min(text.size(), kLongest));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c <= ' ' || c >= 0x7f; }, '?');
  return text;
}

std::chrono::milliseconds steady_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

class JoinServer::Service {
 public:
  Service(JoinIdentity identity, Handler handler, Limits limits)
      : identity_(std::move(identity)),
        handler_(std::move(handler)),
        server_(identity_.certificate.get(), identity_.key.get()),
        limits_(limits),
        ca_base64_(to_base64(identity_.certificate_pem)) {}
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() {
    server_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  [[nodiscard]] Status start(const Listen& listen);
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] const std::string& ca_base64() const { return ca_base64_; }

 private:
  void set_routes();
  void join(const httplib::Request& request, httplib::Response& response);
  void grant(const JoinRequest& asked, httplib::Response& response);
  [[nodiscard]] bool may_try(const std::string& address);
  void count_refusal(const std::string& address);

  JoinIdentity identity_;
  Handler handler_;
  httplib::SSLServer server_;
  Limits limits_;
  std::optional<ConnectionWatch> watch_;
  std::string ca_base64_;
  socket_t listener_ = INVALID_SOCKET;
  int port_ = 0;
  std::mutex mutex_;
  AddressLimit limit_{20, std::chrono::seconds(3), 10000};  ///< under mutex_
  std::thread thread_;
};

Status JoinServer::Service::start(const Listen& listen) {
  if (!server_.is_valid()) {
    return fail(ErrorCode::internal, "join service: TLS does not start");
  }
  watch_.emplace(server_.ssl_context(), limits_.connection, limits_.per_address);
  set_routes();
  server_.set_payload_max_length(kLongestRequest);
  server_.set_read_timeout(kReadLimitS);
  server_.set_write_timeout(kReadLimitS);
  server_.set_keep_alive_max_count(1);
  // Not SO_REUSEPORT, the library's default: another daemon would get a part of our nodes.
  server_.set_socket_options([this](socket_t socket) {
    listener_ = socket;
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  if (listen.port == 0) {
    port_ = server_.bind_to_any_port(listen.host);
  } else {
    port_ = server_.bind_to_port(listen.host, listen.port) ? listen.port : -1;
  }
  if (port_ <= 0) {
    return fail(ErrorCode::unavailable,
                "join service: " + listen.host + ":" + std::to_string(listen.port) +
                    ": cannot listen there: is the address this host's, and the port free?");
  }
  ::listen(listener_, SOMAXCONN);  // of the library's 5, those who come in a crowd wait seconds
  thread_ = std::thread([this] { server_.listen_after_bind(); });
  // stop() has no effect on a server that has not come to its loop yet.
  for (int waited_ms = 0; !server_.is_running() && waited_ms < 5000; ++waited_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

void JoinServer::Service::set_routes() {
  server_.Post("/v1/join", [this](const httplib::Request& request, httplib::Response& response) {
    join(request, response);
  });
  server_.Get("/v1/time", [](const httplib::Request&, httplib::Response& response) {
    reply(response, 200, {{"time", format_time(wall_now())}});
  });
}

bool JoinServer::Service::may_try(const std::string& address) {
  const std::lock_guard lock(mutex_);
  return limit_.may_try(address, steady_now());
}

void JoinServer::Service::count_refusal(const std::string& address) {
  const std::lock_guard lock(mutex_);
  limit_.refused(address, steady_now());
}

void JoinServer::Service::join(const httplib::Request& request, httplib::Response& response) {
  if (!may_try(request.remote_addr)) {
    response.set_header("Retry-After", "3");
    refuse(response, 429, "too many refused attempts");
    return;
  }
  const auto body = parse_json("join request", request.body);
  const std::string secret = body ? json_or<std::string>(*body, "secret", "") : "";
  if (secret.empty()) {
    count_refusal(request.remote_addr);
    refuse(response, 400, "must be a JSON object with a secret");
    return;
  }
  grant(
      {sha256_hex(secret), tidy(json_or<std::string>(*body, "instance", "")), request.remote_addr},
      response);
}

void JoinServer::Service::grant(const JoinRequest& asked, httplib::Response& response) {
  Result<JoinGrant> granted = fail(ErrorCode::internal, "the handler failed");
  try {
    granted = handler_(asked);
  } catch (const std::exception& error) {
    granted = fail(ErrorCode::internal, error.what());
  }
  if (granted) {
    spdlog::info("join service: {} at {} is node {}", asked.instance, asked.address, granted->node);
    reply(response,
          200,
          {{"node", granted->node},
           {"cluster", granted->cluster},
           {"conf_server", granted->conf_server},
           {"munge_key", to_base64(granted->munge_key)}});
    return;
  }
  spdlog::warn(
      "join service: {} at {}: {}", asked.instance, asked.address, granted.error().message);
  const int status = status_for(granted.error().code);
  if (status == 403) {
    count_refusal(asked.address);
  }
  refuse(response,
         status,
         status == 403   ? "the secret is not accepted"
         : status == 409 ? "the secret has been used"
                         : "try again");
}

JoinServer::JoinServer(std::unique_ptr<Service> service) : service_(std::move(service)) {}
JoinServer::~JoinServer() = default;

int JoinServer::port() const {
  return service_->port();
}
const std::string& JoinServer::ca_base64() const {
  return service_->ca_base64();
}

Result<std::unique_ptr<JoinServer>> JoinServer::start(const std::string& listen,
                                                      const std::filesystem::path& identity,
                                                      Handler handler) {
  return start(listen, identity, std::move(handler), Limits{});
}

Result<std::unique_ptr<JoinServer>> JoinServer::start(const std::string& listen,
                                                      const std::filesystem::path& identity,
                                                      Handler handler,
                                                      Limits limits) {
  ACB_TRY_ASSIGN(const Listen place, parse_listen(listen));
  ACB_TRY_ASSIGN(JoinIdentity keys, load_or_make_identity(identity));
  auto service = std::make_unique<Service>(std::move(keys), std::move(handler), limits);
  ACB_TRY(service->start(place));
  return std::unique_ptr<JoinServer>(new JoinServer(std::move(service)));
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/http_edge.h"

#include "cloudsim/render.h"

#include <httplib.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace acb::sim {

namespace {

// Calls that wait (slow replies, keys in flight, idle keep-alive connections) hold a thread each.
constexpr std::size_t kThreads = 256;
constexpr std::size_t kKeepAliveCalls = 10'000;
constexpr time_t kKeepAliveSeconds = 2;
constexpr std::size_t kBodyLimit = std::size_t{1} << 20;
constexpr const char* kJson = "application/json";

ApiRequest request_of(const httplib::Request& http) {
  ApiRequest request{http.method, http.path};
  request.query.insert(http.params.begin(), http.params.end());
  request.authorization = http.get_header_value("Authorization");
  request.idempotency_key = http.get_header_value("Idempotency-Key");
  request.content_md5 = http.get_header_value("Content-MD5");
  request.range = http.get_header_value("Range");
  request.body = http.body;
  return request;
}

void send_object(const ApiReply& reply, httplib::Response& http) {
  http.set_content_provider(
      reply.range.length,
      "application/octet-stream",
      [object = *reply.object, start = reply.range.offset](
          std::size_t offset, std::size_t length, httplib::DataSink& sink) {
        std::string buffer(std::min<std::size_t>(length, 1 << 16), '\0');
        const ssize_t got = ::pread(
            object.fd->get(), buffer.data(), buffer.size(), static_cast<off_t>(start + offset));
        return got > 0 && sink.write(buffer.data(), static_cast<std::size_t>(got));
      });
}

void send(const ApiReply& reply, const httplib::Request& request, httplib::Response& http) {
  // cpp-httplib 0.11 would cut the range out of whatever body follows, an error's too, without a
  // check of its bounds; the ranges of objects are cut already.
  const_cast<httplib::Request&>(request).ranges.clear();
  if (reply.delivery == ApiReply::Delivery::connection_closed) {
    if (request.ssl != nullptr) {
      ::shutdown(SSL_get_fd(request.ssl), SHUT_RDWR);
    }
    http.set_header("Connection", "close");
    http.status = 500;
    return;
  }
  http.status = reply.status;
  for (const auto& [name, value] : reply.headers) {
    http.set_header(name, value);
  }
  if (reply.object && reply.range.length > 0) {
    send_object(reply, http);
  } else if (reply.delivery == ApiReply::Delivery::cut_in_half) {
    http.set_content(reply.body.substr(0, reply.body.size() / 2), kJson);
  } else if (reply.status != 204) {
    http.set_content(reply.body, reply.object ? "application/octet-stream" : kJson);
  }
}

void configure(httplib::Server& server) {
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_keep_alive_max_count(kKeepAliveCalls);
  server.set_keep_alive_timeout(kKeepAliveSeconds);
  server.set_tcp_nodelay(true);
  const auto explain = [](httplib::Response& http, const std::string& message) {
    const bool ours = http.status >= 500;
    const ApiError error{http.status, ours ? "internal" : "invalid_argument", message};
    http.set_content(dump_json(error_json(error, "none")), kJson);
  };
  // What the library refuses by itself (a request that is no HTTP, say) has no body yet.
  server.set_error_handler([explain](const httplib::Request&, httplib::Response& http) {
    if (http.body.empty() && http.status != 204) {
      explain(http, "the request was not understood");
    }
  });
  server.set_exception_handler(
      [explain](const httplib::Request&, httplib::Response& http, const std::exception_ptr&) {
        http.status = 500;
        explain(http, "unexpected failure");
      });
}

// Without this, cpp-httplib 0.11 reads a body of unknown length until its read times out, where
// RFC 9112, 6.3 says that there is none.
bool announces_body(const httplib::Request& request) {
  return request.has_header("Content-Length") || request.has_header("Transfer-Encoding");
}

void answer_with_body(Api& api,
                      const httplib::Request& http_request,
                      httplib::Response& http,
                      const httplib::ContentReader& read) {
  ApiRequest request = request_of(http_request);
  if (announces_body(http_request)) {
    request.broken = !read([&](const char* bytes, std::size_t length) {
      request.body.append(bytes, length);
      return request.body.size() <= kBodyLimit;
    });
  }
  send(api.handle(request), http_request, http);
}

void answer_upload(Api& api,
                   const httplib::Request& http_request,
                   httplib::Response& http,
                   const httplib::ContentReader& read) {
  ApiRequest request = request_of(http_request);
  auto upload = api.objects().begin();
  if (upload) {
    request.upload = upload->get();
    request.broken =
        announces_body(http_request) && !read([&](const char* bytes, std::size_t length) {
          return (*upload)->append({bytes, length});
        });
  } else {
    spdlog::error("objects: {}", upload.error().message);
    request.broken = true;
  }
  send(api.handle(request), http_request, http);
}

class Servers : public HttpEdge {
 public:
  Servers(const std::filesystem::path& cert, const std::filesystem::path& key)
      : api_(cert.c_str(), key.c_str()) {}
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;
  ~Servers() override { end(); }

  Status bind_both(const Listener& api, const Listener& metadata) {
    if (!api_.is_valid()) {
      return fail(ErrorCode::invalid, "serve: the certificate or its key cannot be used");
    }
    ACB_TRY_ASSIGN(api_port_, bind_one(api_, api));
    ACB_TRY_ASSIGN(metadata_port_, bind_one(metadata_, metadata));
    return {};
  }

  [[nodiscard]] int api_port() const override { return api_port_; }
  [[nodiscard]] int metadata_port() const override { return metadata_port_; }

  void serve(Api& api) override {
    const auto answer = [&api](const httplib::Request& request, httplib::Response& http) {
      send(api.handle(request_of(request)), request, http);
    };
    const auto answer_metadata = [&api](const httplib::Request& request, httplib::Response& http) {
      send(api.handle_metadata(request_of(request)), request, http);
    };
    configure(api_);
    configure(metadata_);
    const auto answer_body = [&api](const httplib::Request& request,
                                    httplib::Response& http,
                                    const httplib::ContentReader& read) {
      if (request.method == "PUT") {
        answer_upload(api, request, http, read);
      } else {
        answer_with_body(api, request, http, read);
      }
    };
    api_.Get(".*", answer).Delete(".*", answer);
    api_.Post(".*", answer_body).Patch(".*", answer_body).Put(".*", answer_body);
    metadata_.Get(".*", answer_metadata);
    for (httplib::Server* server : {static_cast<httplib::Server*>(&api_), &metadata_}) {
      threads_.emplace_back([server] { server->listen_after_bind(); });
      // stop() on a server that does not run yet would be lost.
      while (!server->is_running()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  void stop() override { end(); }

 private:
  void end() {
    api_.stop();
    metadata_.stop();
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

  static Result<int> bind_one(httplib::Server& server, const Listener& listener) {
    // Not SO_REUSEPORT, the library's default: two clouds on one port would share the calls.
    server.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    const int port = listener.port == 0 ? server.bind_to_any_port(listener.address)
                     : server.bind_to_port(listener.address, listener.port) ? listener.port
                                                                            : -1;
    if (port < 0) {
      return fail(ErrorCode::unavailable,
                  "serve: " + listener.address + ":" + std::to_string(listener.port) +
                      ": cannot listen there");
    }
    return port;
  }

  httplib::SSLServer api_;
  httplib::Server metadata_;
  int api_port_ = 0;
  int metadata_port_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<Listener> parse_listener(std::string_view what, std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return fail(ErrorCode::invalid,
                std::string(what) + ": '" + std::string(text) + "': must be ADDRESS:PORT");
  }
  Listener listener;
  listener.address = text.substr(0, colon);
  ACB_TRY_ASSIGN(const std::int64_t port, parse_integer(what, text.substr(colon + 1), 0, 65535));
  listener.port = static_cast<int>(port);
  return listener;
}

Result<std::unique_ptr<HttpEdge>> HttpEdge::bind(const Listener& api,
                                                 const Listener& metadata,
                                                 const std::filesystem::path& cert,
                                                 const std::filesystem::path& key) {
  auto servers = std::make_unique<Servers>(cert, key);
  ACB_TRY(servers->bind_both(api, metadata));
  return servers;
}

}  // namespace acb::sim

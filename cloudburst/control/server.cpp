// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/control/server.h"

#include "base/files.h"
#include "cloudburst/control/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <functional>
#include <list>
#include <thread>
#include <utility>
#include <vector>

namespace acb::cloud {

namespace {

using Clock = std::chrono::steady_clock;

struct Client {
  UniqueFd fd;
  Peer peer;
  std::string input;   ///< of an unfinished line
  std::string output;  ///< not yet taken by the client
  Clock::time_point last_heard = Clock::now();
  bool ending = false;  ///< nothing more is read; closed once the output is taken
  /// Whole requests are left in the input: one is answered at each turn, so that a client that
  /// sends many keeps no other waiting. Nothing more is read meanwhile.
  [[nodiscard]] bool has_more() const { return !ending && input.find('\n') != std::string::npos; }
};

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// Whether somebody accepts connections on the path.
bool is_alive(const SocketAddress& address) {
  const auto probe = new_socket();
  return probe &&
         (::connect(probe->get(), address.get(), SocketAddress::size()) == 0 || errno == EAGAIN);
}

Result<UniqueFd> listen_on(const std::filesystem::path& path) {
  ACB_TRY_ASSIGN(const SocketAddress address, socket_address(path));
  if (is_alive(address)) {
    return fail(ErrorCode::exists,
                "control socket: " + path.string() + ": another daemon answers on it");
  }
  ::unlink(path.c_str());
  ACB_TRY_ASSIGN(UniqueFd listener, new_socket());
  if (::bind(listener.get(), address.get(), SocketAddress::size()) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(listener.get(), SOMAXCONN) != 0) {
    return fail_errno("control socket: " + path.string());
  }
  return listener;
}

}  // namespace

Json error_reply(const Error& error) {
  return {{"error", {{"code", name_of(error.code)}, {"message", error.message}}}};
}

class ControlServer::Loop {
 public:
  Loop(std::filesystem::path path, UniqueFd listener, UniqueFd stop, Handler handler, Limits limits)
      : path_(std::move(path)),
        listener_(std::move(listener)),
        stop_(std::move(stop)),
        handler_(std::move(handler)),
        limits_(limits),
        thread_([this] { run(); }) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(stop_.get(), &one, sizeof one));
    thread_.join();
    ::unlink(path_.c_str());
  }

 private:
  void run();
  void accept_all();
  void drop_silent();
  void drop_longest_silent();
  void read_from(Client& client);
  void answer_line(Client& client);
  void write_to(Client& client);
  [[nodiscard]] std::string answer(std::string_view line, const Peer& peer);
  [[nodiscard]] int wait_limit() const;

  std::filesystem::path path_;
  UniqueFd listener_;
  UniqueFd stop_;
  Handler handler_;
  Limits limits_;
  std::list<Client> clients_;
  std::thread thread_;
};

int ControlServer::Loop::wait_limit() const {
  if (clients_.empty()) {
    return -1;
  }
  if (std::any_of(clients_.begin(), clients_.end(), std::mem_fn(&Client::has_more))) {
    return 0;
  }
  return static_cast<int>(std::min<std::chrono::milliseconds::rep>(limits_.idle.count(), 1000));
}

void ControlServer::Loop::run() {
  std::vector<pollfd> polled;
  while (true) {
    polled = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Client& client : clients_) {
      const int wanted =
          (client.ending || client.has_more() ? 0 : POLLIN) | (client.output.empty() ? 0 : POLLOUT);
      polled.push_back({client.fd.get(), static_cast<short>(wanted), 0});
    }
    if (::poll(polled.data(), polled.size(), wait_limit()) < 0 && errno != EINTR) {
      spdlog::error("control socket: poll failed: errno {}", errno);
      return;
    }
    if (polled[0].revents != 0) {
      return;
    }
    std::size_t index = 2;
    for (Client& client : clients_) {
      const short events = polled[index++].revents;
      if ((events & (POLLERR | POLLNVAL)) != 0) {
        client.fd.reset();
        continue;
      }
      if (client.has_more()) {
        answer_line(client);
      } else if ((events & (POLLIN | POLLHUP)) != 0 && !client.ending) {
        read_from(client);
      }
      if (client.fd && !client.output.empty()) {
        write_to(client);
      }
    }
    drop_silent();
    if (polled[1].revents != 0) {
      accept_all();
    }
  }
}

void ControlServer::Loop::accept_all() {
  while (true) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EMFILE || errno == ENFILE) {
        drop_longest_silent();
      }
      return;
    }
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
      continue;
    }
    if (clients_.size() >= limits_.clients) {
      drop_longest_silent();
    }
    Client client;
    client.fd = std::move(fd);
    client.peer = {credentials.uid, credentials.gid, credentials.pid};
    clients_.push_back(std::move(client));
  }
}

void ControlServer::Loop::drop_longest_silent() {
  const auto silent =
      std::min_element(clients_.begin(), clients_.end(), [](const Client& a, const Client& b) {
        return a.last_heard < b.last_heard;
      });
  if (silent != clients_.end()) {
    clients_.erase(silent);
  }
}

void ControlServer::Loop::drop_silent() {
  const Clock::time_point now = Clock::now();
  clients_.remove_if([&](const Client& client) {
    return !client.fd || (client.ending && client.output.empty()) ||
           now - client.last_heard > limits_.idle;
  });
}

void ControlServer::Loop::read_from(Client& client) {
  char buffer[16384];
  const ssize_t got = ::recv(client.fd.get(), buffer, sizeof buffer, 0);
  if (got < 0) {
    if (!would_block()) {
      client.fd.reset();
    }
    return;
  }
  if (got == 0) {
    client.ending = true;
    return;
  }
  client.last_heard = Clock::now();
  client.input.append(buffer, static_cast<std::size_t>(got));
  answer_line(client);
}

void ControlServer::Loop::answer_line(Client& client) {
  const std::size_t end = client.input.find('\n');
  const bool whole = end != std::string::npos;
  const std::size_t length = whole ? end : client.input.size();
  if (length > limits_.request_bytes) {
    client.output +=
        dump_json(error_reply({ErrorCode::invalid,
                               "control socket: a request is longer than " +
                                   std::to_string(limits_.request_bytes) + " bytes"})) +
        "\n";
    client.ending = true;
  } else if (whole) {
    client.output += answer(std::string_view(client.input).substr(0, length), client.peer) + "\n";
    client.input.erase(0, length + 1);
    // One that asks and never reads must not fill our memory.
    client.ending = client.output.size() > limits_.reply_bytes;
  }
}

std::string ControlServer::Loop::answer(std::string_view line, const Peer& peer) {
  const auto request = parse_json("request", line);
  if (!request || !request->is_object()) {
    return dump_json(
        error_reply({ErrorCode::invalid, "control socket: a request must be a JSON object"}));
  }
  try {
    return dump_json(handler_(*request, peer));
  } catch (const std::exception& error) {
    spdlog::error("control socket: {}: {}", dump_json(*request), error.what());
    return dump_json(
        error_reply({ErrorCode::internal, "control socket: the request failed inside"}));
  }
}

void ControlServer::Loop::write_to(Client& client) {
  const ssize_t sent =
      ::send(client.fd.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
  if (sent >= 0) {
    client.output.erase(0, static_cast<std::size_t>(sent));
    client.last_heard = Clock::now();
  } else if (!would_block()) {
    client.fd.reset();
  }
}

ControlServer::ControlServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
ControlServer::~ControlServer() = default;

Result<std::unique_ptr<ControlServer>> ControlServer::open(const std::filesystem::path& path,
                                                           Handler handler,
                                                           Limits limits) {
  ACB_TRY_ASSIGN(UniqueFd listener, listen_on(path));
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop) {
    return fail_errno("control socket");
  }
  auto loop = std::make_unique<Loop>(
      path, std::move(listener), std::move(stop), std::move(handler), limits);
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(loop)));
}

Result<std::unique_ptr<ControlServer>> ControlServer::open(const std::filesystem::path& path,
                                                           Handler handler) {
  return open(path, std::move(handler), Limits{});
}

}  // namespace acb::cloud

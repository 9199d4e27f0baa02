// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/report/server.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace acb::train {

namespace {

using Clock = std::chrono::steady_clock;

// More than a rank or an agent is ever sent between two polls.
constexpr std::size_t kOutgoingLimit = 65536;
constexpr std::chrono::seconds kProofLimit{5};
constexpr int kUnprovenLimit = 256;

std::string line_of(const Json& message) {
  return dump_json(message) + "\n";
}

}  // namespace

Result<ReportServer> ReportServer::listen(std::string secret, const std::string& bind_address) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return fail_errno("report: socket");
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (::inet_pton(AF_INET, bind_address.c_str(), &address.sin_addr) != 1) {
    return fail(ErrorCode::invalid,
                "report: listen: " + bind_address + ": must be an IPv4 address");
  }
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), generic, sizeof address) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    return fail_errno("report: listen: " + bind_address);
  }
  socklen_t size = sizeof address;
  if (::getsockname(fd.get(), generic, &size) != 0) {
    return fail_errno("report: listen: " + bind_address);
  }
  return ReportServer(std::move(secret), std::move(fd), ntohs(address.sin_port));
}

std::vector<ServerEvent> ReportServer::poll(int wake_fd, std::chrono::milliseconds limit) {
  std::vector<pollfd> pollers = {{listener_.get(), POLLIN, 0}, {wake_fd, POLLIN, 0}};
  std::vector<int> ids;
  for (auto& [id, client] : clients_) {
    flush(client);
    const short wanted = client.outgoing.empty() ? POLLIN : POLLIN | POLLOUT;
    pollers.push_back({client.fd.get(), wanted, 0});
    ids.push_back(id);
  }
  std::vector<ServerEvent> events;
  if (::poll(pollers.data(), pollers.size(), static_cast<int>(limit.count())) > 0) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (pollers[i + 2].revents != 0) {
        Client& client = clients_.at(ids[i]);
        flush(client);
        read_from(ids[i], client, events);
      }
    }
    if (pollers[0].revents != 0) {
      accept_clients();
    }
  }
  drop_broken(events);
  return events;
}

void ReportServer::accept_clients() {
  auto unproven = std::count_if(
      clients_.begin(), clients_.end(), [](const auto& entry) { return !entry.second.proven; });
  while (unproven < kUnprovenLimit) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      return;
    }
    const int yes = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    Client client;
    client.fd = std::move(fd);
    client.nonce = random_hex(16);
    client.since = Clock::now();
    client.outgoing =
        line_of({{"v", kProtocolVersion}, {"type", "challenge"}, {"nonce", client.nonce}});
    flush(client);
    clients_.emplace(next_id_++, std::move(client));
    ++unproven;
  }
}

void ReportServer::read_from(int id, Client& client, std::vector<ServerEvent>& events) {
  std::array<char, kLineLimit> buffer{};
  while (!client.broken) {
    const ssize_t got = ::recv(client.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && errno == EAGAIN) {
      return;
    }
    if (got <= 0) {
      client.broken = true;
      return;
    }
    client.broken = !client.lines.add({buffer.data(), static_cast<std::size_t>(got)});
    while (auto line = client.lines.next()) {
      handle_line(id, client, *line, events);
    }
  }
}

void ReportServer::handle_line(int id,
                               Client& client,
                               const std::string& line,
                               std::vector<ServerEvent>& events) {
  if (client.broken) {
    return;
  }
  auto message = parse_json("report", line);
  if (!message || !message->is_object()) {
    client.broken = true;
    return;
  }
  if (client.proven) {
    events.push_back({ServerEvent::Kind::message, id, client.hello, std::move(*message)});
    return;
  }
  auto hello = check_hello(*message, secret_, client.nonce);
  if (!hello) {
    client.outgoing += line_of({{"type", "refused"}, {"reason", hello.error().message}});
    flush(client);
    client.broken = true;
    return;
  }
  client.proven = true;
  client.hello = *hello;
  const std::string nonce = json_or<std::string>(*message, "nonce", "");
  client.outgoing +=
      line_of({{"type", "welcome"}, {"mac", server_code(secret_, client.nonce, nonce)}});
  flush(client);
  events.push_back({ServerEvent::Kind::joined, id, client.hello, {}});
}

void ReportServer::flush(Client& client) {
  while (!client.outgoing.empty() && !client.broken) {
    const ssize_t wrote = ::send(client.fd.get(),
                                 client.outgoing.data(),
                                 client.outgoing.size(),
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote >= 0) {
      client.outgoing.erase(0, static_cast<std::size_t>(wrote));
    } else if (errno == EAGAIN) {
      client.broken = client.outgoing.size() > kOutgoingLimit;
      return;
    } else if (errno != EINTR) {
      client.broken = true;
    }
  }
}

void ReportServer::drop_broken(std::vector<ServerEvent>& events) {
  const Clock::time_point now = Clock::now();
  for (auto entry = clients_.begin(); entry != clients_.end();) {
    Client& client = entry->second;
    const bool late = !client.proven && now - client.since > kProofLimit;
    if (!client.broken && !late) {
      ++entry;
      continue;
    }
    if (client.proven) {
      events.push_back({ServerEvent::Kind::gone, entry->first, client.hello, {}});
    }
    entry = clients_.erase(entry);
  }
}

void ReportServer::send(int client, const Json& message) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) {
    found->second.outgoing += line_of(message);
    flush(found->second);
  }
}

void ReportServer::refuse(int client, const std::string& reason) {
  send(client, {{"type", "refused"}, {"reason", reason}});
  clients_.erase(client);
}

}  // namespace acb::train

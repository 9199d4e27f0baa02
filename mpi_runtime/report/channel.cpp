// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/report/channel.h"

#include "base/text.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <thread>

namespace acb::train {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSendLimit{2000};
constexpr milliseconds kRetryPause{200};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<long long>(left, 0));
}

// Waits until the descriptor is ready; false once the deadline has passed.
bool wait_for(int fd, short what, Clock::time_point deadline) {
  while (true) {
    pollfd poller{fd, what, 0};
    const int ready = ::poll(&poller, 1, milliseconds_until(deadline));
    if (ready > 0) {
      return true;
    }
    if (ready == 0 || errno != EINTR) {
      return false;
    }
  }
}

/// 0, or the error of an attempt to connect: ETIMEDOUT where nothing has answered by the deadline.
int try_to_connect(int fd, const addrinfo& target, Clock::time_point deadline) {
  if (::connect(fd, target.ai_addr, target.ai_addrlen) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  if (!wait_for(fd, POLLOUT, deadline)) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

Result<UniqueFd> new_socket(const addrinfo& target) {
  UniqueFd fd(::socket(
      target.ai_family, target.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, target.ai_protocol));
  if (!fd) {
    return fail_errno("socket");
  }
  return fd;
}

using Targets = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Targets> look_up(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return fail(ErrorCode::invalid, "report: supervisor " + address + ": must be host:port");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(
      address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (status != 0) {
    return fail(ErrorCode::unavailable, ::gai_strerror(status));
  }
  return Targets(found, &::freeaddrinfo);
}

Result<UniqueFd> connect_once(const std::string& address, Clock::time_point deadline) {
  ACB_TRY_ASSIGN(const Targets targets, look_up(address));
  ACB_TRY_ASSIGN(UniqueFd fd, new_socket(*targets));
  const int yes = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (const int error = try_to_connect(fd.get(), *targets, deadline); error != 0) {
    return fail(ErrorCode::unavailable, "connect: error " + std::to_string(error));
  }
  return fd;
}

}  // namespace

bool host_answers(const std::string& address, milliseconds limit) {
  const auto targets = look_up(address);
  if (!targets) {
    return true;  // that is this host's trouble, as is the next
  }
  const auto fd = new_socket(**targets);
  if (!fd) {
    return true;
  }
  const int error = try_to_connect(fd->get(), **targets, Clock::now() + limit);
  return error == 0 || error == ECONNREFUSED || error == ECONNRESET;
}

Result<Channel> Channel::open(const std::string& address,
                              const std::string& secret,
                              const Hello& hello,
                              milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  while (true) {
    Result<UniqueFd> fd = connect_once(address, deadline);
    if (fd) {
      Channel channel(std::move(*fd));
      const Status shaken = channel.shake_hands(secret, hello, deadline);
      if (shaken) {
        return channel;
      }
      if (shaken.error().code != ErrorCode::unavailable || Clock::now() >= deadline) {
        return fail_with("report: supervisor " + address, shaken.error());
      }
    } else if (fd.error().code != ErrorCode::unavailable || Clock::now() >= deadline) {
      return fail_with("report: supervisor " + address, fd.error());
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

Status Channel::shake_hands(const std::string& secret,
                            const Hello& hello,
                            Clock::time_point deadline) {
  ACB_TRY_ASSIGN(const Json challenge, wait_for_message(deadline));
  const std::string server_nonce = json_or<std::string>(challenge, "nonce", "");
  if (json_or<int>(challenge, "v", 0) != kProtocolVersion || server_nonce.empty()) {
    return fail(ErrorCode::invalid, "no challenge of protocol version 1: another program?");
  }
  const std::string client_nonce = random_hex(16);
  ACB_TRY(send(hello_message(hello, secret, server_nonce, client_nonce)));
  ACB_TRY_ASSIGN(const Json answer, wait_for_message(deadline));
  if (json_or<std::string>(answer, "type", "") != "welcome") {
    return fail(ErrorCode::denied,
                "refused: " + json_or<std::string>(answer, "reason", "no reason given"));
  }
  if (!same_code(server_code(secret, server_nonce, client_nonce),
                 json_or<std::string>(answer, "mac", ""))) {
    return fail(ErrorCode::denied, "it does not know the secret of this run");
  }
  return {};
}

Result<Json> Channel::wait_for_message(Clock::time_point deadline) {
  while (true) {
    ACB_TRY_ASSIGN(std::vector<Json> messages, receive());
    if (!messages.empty()) {
      Json first = std::move(messages.front());
      ahead_.assign(messages.begin() + 1, messages.end());
      return first;
    }
    if (!wait_for(fd_.get(), POLLIN, deadline)) {
      return fail(ErrorCode::unavailable, "no answer in time");
    }
  }
}

Status Channel::send(const Json& message) {
  const std::string line = dump_json(message) + "\n";
  const Clock::time_point deadline = Clock::now() + kSendLimit;
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t wrote =
        ::send(fd_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote >= 0) {
      sent += static_cast<std::size_t>(wrote);
    } else if (errno == EAGAIN) {
      if (!wait_for(fd_.get(), POLLOUT, deadline)) {
        return fail(ErrorCode::unavailable, "report: the supervisor takes no messages");
      }
    } else if (errno != EINTR) {
      return fail(ErrorCode::unavailable, "report: the connection to the supervisor broke");
    }
  }
  return {};
}

Result<std::vector<Json>> Channel::receive() {
  std::vector<Json> messages = std::move(ahead_);
  ahead_.clear();
  std::array<char, kLineLimit> buffer{};
  bool closed = false;
  while (!closed) {
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      ACB_TRY(lines_.add({buffer.data(), static_cast<std::size_t>(got)}));
    } else if (got < 0 && errno == EAGAIN) {
      break;
    } else {
      closed = got == 0 || errno != EINTR;
    }
  }
  while (auto line = lines_.next()) {
    ACB_TRY_ASSIGN(Json message, parse_json("report", *line));
    messages.push_back(std::move(message));
  }
  // A refusal and the close behind it arrive together: the words first, the end at the next call.
  if (closed && messages.empty()) {
    return fail(ErrorCode::unavailable, "report: the supervisor closed the connection");
  }
  return messages;
}

}  // namespace acb::train

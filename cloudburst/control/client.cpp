// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/control/client.h"

#include "base/files.h"
#include "cloudburst/control/socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace acb::cloud {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kReplyLimit = std::size_t{64} << 20;
constexpr std::array kCodes{ErrorCode::invalid,
                            ErrorCode::not_found,
                            ErrorCode::denied,
                            ErrorCode::exists,
                            ErrorCode::exhausted,
                            ErrorCode::rate_limited,
                            ErrorCode::timeout,
                            ErrorCode::unavailable,
                            ErrorCode::corrupt,
                            ErrorCode::internal};

milliseconds left_until(Clock::time_point deadline) {
  return std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
}

// True once the descriptor is ready for `events`, false when the deadline has passed.
bool ready(int fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = left_until(deadline).count();
    if (left <= 0) {
      return false;
    }
    pollfd poller{fd, events, 0};
    if (::poll(&poller, 1, static_cast<int>(std::min<milliseconds::rep>(left, 60000))) > 0) {
      return true;
    }
  }
}

tl::unexpected<Error> too_late(const std::filesystem::path& socket) {
  return fail(ErrorCode::timeout, "autocloudd: no answer in time: " + socket.string());
}

Result<UniqueFd> connect_to(const std::filesystem::path& socket, Clock::time_point deadline) {
  ACB_TRY_ASSIGN(const SocketAddress address, socket_address(socket));
  ACB_TRY_ASSIGN(UniqueFd fd, new_socket());
  while (::connect(fd.get(), address.get(), SocketAddress::size()) != 0) {
    if (errno == EACCES || errno == EPERM) {
      return fail_errno("autocloudd: " + socket.string());
    }
    if (errno != EAGAIN && errno != EINTR) {
      return fail(ErrorCode::unavailable,
                  "autocloudd: not running here: nobody listens on " + socket.string() +
                      "; ask on the controller, where autocloudd runs");
    }
    // The daemon's backlog is full; the kernel gives no event for room in it.
    if (left_until(deadline) <= milliseconds(0)) {
      return too_late(socket);
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return fd;
}

Status send_line(int fd, std::string_view line, Clock::time_point deadline) {
  while (!line.empty()) {
    if (!ready(fd, POLLOUT, deadline)) {
      return fail(ErrorCode::timeout, "autocloudd: does not take the request");
    }
    const ssize_t sent = ::send(fd, line.data(), line.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      line.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return fail(ErrorCode::unavailable, "autocloudd: closed the connection");
    }
  }
  return {};
}

Result<std::string> receive_line(int fd, Clock::time_point deadline) {
  std::string line;
  std::string buffer(std::size_t{1} << 16, '\0');
  while (line.size() < kReplyLimit) {
    if (!ready(fd, POLLIN, deadline)) {
      return fail(ErrorCode::timeout, "autocloudd: no answer in time");
    }
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got == 0) {
      return fail(ErrorCode::unavailable, "autocloudd: closed the connection");
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR) {
      return fail(ErrorCode::unavailable, "autocloudd: closed the connection");
    }
    if (got > 0) {
      line.append(buffer, 0, static_cast<std::size_t>(got));
      if (line.back() == '\n') {
        return line;
      }
    }
  }
  return fail(ErrorCode::corrupt, "autocloudd: the answer is too long");
}

ErrorCode code_named(std::string_view name) {
  for (const ErrorCode code : kCodes) {
    if (name_of(code) == name) {
      return code;
    }
  }
  return ErrorCode::internal;
}

}  // namespace

Result<Json> control_call(const std::filesystem::path& socket,
                          const Json& request,
                          milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  ACB_TRY_ASSIGN(const UniqueFd fd, connect_to(socket, deadline));
  // A daemon that finds the request too long says so and closes before it has taken all of it.
  const Status sent = send_line(fd.get(), dump_json(request) + "\n", deadline);
  const auto line = receive_line(fd.get(), deadline);
  if (!line) {
    return tl::unexpected<Error>(sent ? line.error() : sent.error());
  }
  ACB_TRY_ASSIGN(Json reply, parse_json("autocloudd: answer", *line));
  if (!reply.is_object()) {
    return fail(ErrorCode::corrupt, "autocloudd: the answer is not a JSON object");
  }
  if (const auto error = reply.find("error"); error != reply.end() && error->is_object()) {
    return fail(code_named(json_or<std::string>(*error, "code", "")),
                json_or<std::string>(*error, "message", "autocloudd: failed without a reason"));
  }
  return reply;
}

}  // namespace acb::cloud

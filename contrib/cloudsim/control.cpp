// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/control.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace acb::sim {

namespace {

constexpr std::size_t kLineLimit = std::size_t{1} << 26;
constexpr std::time_t kPatience = 10;  // seconds

Result<sockaddr_un> address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::invalid, "control: '" + text + "': too long for a Unix socket");
  }
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

Result<UniqueFd> new_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) {
    return fail_errno("control: socket");
  }
  return fd;
}

void limit_waits(int fd) {
  const timeval patience{kPatience, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

Result<std::string> read_line(int fd) {
  std::string line;
  std::string buffer(4096, '\0');
  while (line.size() < kLineLimit) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) {
      return fail(ErrorCode::unavailable, "control: the connection broke off");
    }
    line.append(buffer, 0, static_cast<std::size_t>(got));
    if (const std::size_t end = line.find('\n'); end != std::string::npos) {
      line.resize(end);
      return line;
    }
  }
  return fail(ErrorCode::invalid, "control: line too long");
}

void serve_one(Simulator& simulator, int fd) {
  limit_waits(fd);
  const auto line = read_line(fd);
  if (!line) {
    return;
  }
  const auto request = parse_json("control", *line);
  const Json reply = control_reply(simulator, request ? *request : Json::object());
  if (const auto sent = write_all(fd, dump_json(reply) + "\n"); !sent) {
    spdlog::warn("control: {}", sent.error().message);
  }
}

}  // namespace

Result<std::unique_ptr<ControlSocket>> ControlSocket::open(const std::filesystem::path& path,
                                                           Simulator& simulator) {
  ACB_TRY_ASSIGN(const sockaddr_un address, address_of(path));
  ACB_TRY_ASSIGN(UniqueFd fd, new_socket());
  ::unlink(path.c_str());
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(mask);
  if (bound != 0 || ::listen(fd.get(), 16) != 0) {
    return fail_errno("control: listening on " + path.string());
  }
  return std::unique_ptr<ControlSocket>(new ControlSocket(path, std::move(fd), simulator));
}

ControlSocket::ControlSocket(std::filesystem::path path, UniqueFd fd, Simulator& simulator)
    : path_(std::move(path)),
      listener_(std::move(fd)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      simulator_(simulator),
      thread_([this] { run(); }) {}

ControlSocket::~ControlSocket() {
  const std::uint64_t one = 1;
  if (::write(stop_.get(), &one, sizeof one) != sizeof one) {
    spdlog::error("control: the thread cannot be told to stop");
  }
  thread_.join();
  ::unlink(path_.c_str());
}

void ControlSocket::run() {
  while (true) {
    pollfd waits[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0) {
      continue;
    }
    if (waits[1].revents != 0) {
      return;
    }
    const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client) {
      serve_one(simulator_, client.get());
    }
  }
}

Result<Json> ask(const std::filesystem::path& state, const Json& request) {
  const std::filesystem::path path = state / "control.sock";
  ACB_TRY_ASSIGN(const sockaddr_un address, address_of(path));
  ACB_TRY_ASSIGN(const UniqueFd fd, new_socket());
  limit_waits(fd.get());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(ErrorCode::unavailable,
                "control: '" + path.string() + "': no server: " + std::strerror(errno));
  }
  ACB_TRY(write_all(fd.get(), dump_json(request) + "\n"));
  ACB_TRY_ASSIGN(const std::string line, read_line(fd.get()));
  ACB_TRY_ASSIGN(Json reply, parse_json("control", line));
  if (reply.contains("error")) {
    return fail(ErrorCode::invalid, json_or(reply["error"], "message", std::string("refused")));
  }
  return reply;
}

}  // namespace acb::sim

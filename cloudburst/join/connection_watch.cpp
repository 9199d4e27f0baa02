// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/join/connection_watch.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace acb::cloud {

namespace {

std::string peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> text{};
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(fd, general, &size) != 0 ||
      ::getnameinfo(general, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

}  // namespace

ConnectionWatch::ConnectionWatch(SSL_CTX* context,
                                 std::chrono::milliseconds longest,
                                 int per_address)
    : longest_(longest), per_address_(per_address), thread_([this] { run(); }) {
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_set_info_callback(context, on_step);
}

ConnectionWatch::~ConnectionWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ConnectionWatch::on_step(const SSL* ssl, int where, int /*result*/) {
  if ((where & SSL_CB_HANDSHAKE_START) != 0) {
    auto* watch = static_cast<ConnectionWatch*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
    watch->begun(const_cast<SSL*>(ssl));
  }
}

void ConnectionWatch::on_free(void* parent,
                              void* watch,
                              CRYPTO_EX_DATA* /*data*/,
                              int /*index*/,
                              long /*unused*/,
                              void* /*unused*/) {
  if (watch != nullptr) {
    static_cast<ConnectionWatch*>(watch)->over(static_cast<const SSL*>(parent));
  }
}

void ConnectionWatch::begun(SSL* ssl) {
  // The descriptor is closed after its SSL has been freed, so that none is shut down that has come
  // to stand for something else.
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, on_free);
  const std::lock_guard lock(mutex_);
  if (connections_.contains(ssl)) {
    return;  // a later message of the handshake's kind
  }
  const int fd = SSL_get_fd(ssl);
  std::string address = peer_of(fd);
  const auto same = std::count_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
    return entry.second.address == address;
  });
  if (same >= per_address_ || SSL_set_ex_data(ssl, index, this) != 1) {
    ::shutdown(fd, SHUT_RDWR);
    return;
  }
  connections_[ssl] = {fd, std::move(address), Clock::now() + longest_};
  changed_.notify_all();
}

void ConnectionWatch::over(const SSL* ssl) {
  const std::lock_guard lock(mutex_);
  connections_.erase(ssl);
}

void ConnectionWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = Clock::time_point::max();
    for (auto& [ssl, connection] : connections_) {
      if (connection.ends <= now) {
        ::shutdown(connection.fd, SHUT_RDWR);
        connection.ends = Clock::time_point::max();
      }
      next = std::min(next, connection.ends);
    }
    if (next == Clock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, next);
    }
  }
}

}  // namespace acb::cloud

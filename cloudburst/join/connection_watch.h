// SPDX-License-Identifier: Apache-2.0
// Ends connections of a TLS server that last too long, or are too many from one address: timeouts
// of single reads do not stop a client that sends a byte now and then. It hears of connections from
// OpenSSL itself. Thread-safe.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace acb::cloud {

class ConnectionWatch {
 public:
  /// Watches all connections of `context`, which must not begin one after the watch has ended.
  ConnectionWatch(SSL_CTX* context, std::chrono::milliseconds longest, int per_address);
  ConnectionWatch(const ConnectionWatch&) = delete;
  ConnectionWatch& operator=(const ConnectionWatch&) = delete;
  ~ConnectionWatch();

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    int fd = -1;
    std::string address;
    Clock::time_point ends;
  };
  static void on_step(const SSL* ssl, int where, int result);
  static void on_free(void* parent, void* watch, CRYPTO_EX_DATA* data, int index, long, void*);
  void begun(SSL* ssl);
  void over(const SSL* ssl);
  void run();

  const std::chrono::milliseconds longest_;
  const int per_address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const SSL*, Connection> connections_;  ///< their descriptors are open
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace acb::cloud

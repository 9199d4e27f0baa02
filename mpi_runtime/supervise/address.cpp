// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/supervise/supervisor.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>

namespace acb::train {

namespace {

// Empty for a loopback or other family.
std::string text_of(const sockaddr* address) {
  if (address == nullptr || address->sa_family != AF_INET) {
    return {};
  }
  const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address);
  if ((ntohl(ipv4->sin_addr.s_addr) >> 24) == 127) {
    return {};
  }
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &ipv4->sin_addr, text.data(), text.size());
  return text.data();
}

std::string resolved(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) {
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (std::string text = text_of(entry->ai_addr); !text.empty()) {
      return text;
    }
  }
  return {};
}

std::string of_interface() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, &::freeifaddrs);
  for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) != 0) {
      if (std::string text = text_of(entry->ifa_addr); !text.empty()) {
        return text;
      }
    }
  }
  return {};
}

}  // namespace

std::string reachable_address(const std::string& name) {
  if (std::string text = resolved(name); !text.empty()) {
    return text;
  }
  if (std::string text = of_interface(); !text.empty()) {
    return text;
  }
  return "127.0.0.1";
}

}  // namespace acb::train

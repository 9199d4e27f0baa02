// SPDX-License-Identifier: Apache-2.0
// What both ends of the control socket share: its address.
#pragma once

#include "base/files.h"
#include "base/result.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>

namespace acb::cloud {

struct SocketAddress {
  sockaddr_un address{};
  [[nodiscard]] const sockaddr* get() const;
  [[nodiscard]] static constexpr socklen_t size() { return sizeof(sockaddr_un); }
};

/// `invalid` for a path that is longer than Unix sockets allow (107 bytes).
[[nodiscard]] Result<SocketAddress> socket_address(const std::filesystem::path& path);
/// A non-blocking, close-on-exec Unix stream socket.
[[nodiscard]] Result<UniqueFd> new_socket();

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/control/socket.h"

#include <cstring>
#include <string>

namespace acb::cloud {

const sockaddr* SocketAddress::get() const {
  return reinterpret_cast<const sockaddr*>(&address);
}

Result<SocketAddress> socket_address(const std::filesystem::path& path) {
  SocketAddress result;
  result.address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.empty() || text.size() >= sizeof(result.address.sun_path)) {
    return fail(ErrorCode::invalid,
                "control socket: '" + text + "': must be 1 to " +
                    std::to_string(sizeof(result.address.sun_path) - 1) + " bytes long");
  }
  std::memcpy(result.address.sun_path, text.data(), text.size());
  return result;
}

Result<UniqueFd> new_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return fail_errno("control socket");
  }
  return fd;
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// The API over HTTPS and the metadata address over HTTP. The only file that knows cpp-httplib.
#pragma once

#include "cloudsim/api.h"

#include <filesystem>
#include <memory>
#include <string>

namespace acb::sim {

struct Listener {
  std::string address = "127.0.0.1";
  int port = 0;  ///< 0: any
};
/// "ADDRESS:PORT".
[[nodiscard]] Result<Listener> parse_listener(std::string_view what, std::string_view text);

class HttpEdge {
 public:
  /// Binds both; serves nothing yet. The certificate and its key are PEM files.
  [[nodiscard]] static Result<std::unique_ptr<HttpEdge>> bind(const Listener& api,
                                                              const Listener& metadata,
                                                              const std::filesystem::path& cert,
                                                              const std::filesystem::path& key);
  virtual ~HttpEdge() = default;
  [[nodiscard]] virtual int api_port() const = 0;
  [[nodiscard]] virtual int metadata_port() const = 0;
  /// Serves in threads of its own, until stop(). The API must outlive that.
  virtual void serve(Api& api) = 0;
  /// Returns when no call is in progress any more.
  virtual void stop() = 0;
};

}  // namespace acb::sim

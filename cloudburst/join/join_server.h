// SPDX-License-Identifier: Apache-2.0
// Where a rented node gets what it needs to join the cluster: a TLS service whose certificate is
// pinned through the node's user data. A node shows a one-time secret; the munge key itself is
// never in user data.
//
//   POST /v1/join {"secret", "instance"} -> {"node", "cluster", "conf_server", "munge_key"
//   (base64)} GET  /v1/time -> {"time"}: the controller's clock, for the node's check of its own
#pragma once

#include "base/result.h"
#include "cloudburst/join/digest.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace acb::cloud {

struct JoinRequest {
  std::string secret_sha256;  ///< of what the node showed, in hexadecimal; compare with same_text()
  std::string instance;       ///< the cloud's instance id, as the node says
  std::string address;        ///< whence it connected
};

/// What a node is given. Never logged.
struct JoinGrant {
  std::string node;  ///< its name in Slurm
  std::string cluster;
  std::string conf_server;  ///< slurmctld's host[:port], for slurmd --conf-server
  std::string munge_key;    ///< the key's bytes; empty for a site that brings its own
};

class JoinServer {
 public:
  /// Called on the server's threads, several at a time. An error becomes the HTTP status: denied
  /// and not_found 403 (a wrong secret tells nothing), exists 409 (used before), everything else
  /// 503, on which the node tries again.
  using Handler = std::function<Result<JoinGrant>(const JoinRequest& request)>;
  /// What one client may take; nodes ask once and are done in an instant, but a site's may all come
  /// from the address of one gateway.
  struct Limits {
    std::chrono::milliseconds connection{10000};  ///< from its beginning to its end
    int per_address = 8;                          ///< connections at a time
  };

  /// Listens on "ADDRESS:PORT" ("[::]:8543" for IPv6; port 0: a free one). `identity` is the file
  /// that keeps key and certificate (see identity.h), in a folder that only the daemon can enter.
  [[nodiscard]] static Result<std::unique_ptr<JoinServer>> start(
      const std::string& listen, const std::filesystem::path& identity, Handler handler);
  [[nodiscard]] static Result<std::unique_ptr<JoinServer>> start(
      const std::string& listen,
      const std::filesystem::path& identity,
      Handler handler,
      Limits limits);

  JoinServer(const JoinServer&) = delete;
  JoinServer& operator=(const JoinServer&) = delete;
  /// Stops; requests in progress are answered first.
  ~JoinServer();

  [[nodiscard]] int port() const;
  /// The certificate as PEM in base64 on one line: @JOIN_CA_BASE64@ of the user data.
  [[nodiscard]] const std::string& ca_base64() const;

 private:
  class Service;
  explicit JoinServer(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// Where a rented node gets what it needs to join the cluster: one TLS endpoint, POST /v1/join, with
// a certificate made at start and pinned through the node's user data. A node shows a one-time
// secret; the munge key itself is never in user data.
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace acb::cloud {

struct JoinRequest {
  std::string secret_sha256;  ///< of what the node showed, in hexadecimal: compare with same_text()
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
  /// Called on the server's threads, several at a time. Errors become the HTTP status: denied 403,
  /// not_found 403 (a wrong secret tells nothing), exists 409, everything else 503 with "try
  /// again".
  using Handler = std::function<Result<JoinGrant>(const JoinRequest& request)>;

  /// Listens on "ADDRESS:PORT" ("[::]:PORT" for IPv6; port 0: a free one). `names` (host names or
  /// addresses under which nodes reach it) stand in the certificate.
  [[nodiscard]] static Result<std::unique_ptr<JoinServer>> start(
      const std::string& listen, const std::vector<std::string>& names, Handler handler);

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

/// A new one-time secret: 256 random bits in hexadecimal.
[[nodiscard]] std::string new_join_secret();
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
/// Equality in a time that depends on the lengths alone.
[[nodiscard]] bool same_text(std::string_view a, std::string_view b);

}  // namespace acb::cloud

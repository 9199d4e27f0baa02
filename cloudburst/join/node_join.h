// SPDX-License-Identifier: Apache-2.0
// The rented node's side of joining: shows the one-time secret to the daemon and writes down what
// it is given.
#pragma once

#include "base/result.h"
#include "cloudburst/http/secret.h"

#include <chrono>
#include <filesystem>
#include <string>

namespace acb::cloud {

struct JoinOptions {
  std::string url;                ///< https://HOST:PORT
  std::filesystem::path ca_file;  ///< the pinned certificate, PEM
  std::string instance;           ///< the cloud's id of this instance
  std::filesystem::path out;      ///< folder for munge.key (0400) and node.json (0644)
  /// Its existence tells the SPANK plugin that this node is rented.
  std::filesystem::path rented_mark = "/run/autocloud-burst/rented";
  std::chrono::seconds deadline{120};  ///< tries end after this
};

/// Tries every 2 s until it is let in, refused for good, or the deadline has passed. `denied`: the
/// secret or the certificate is not accepted; `exists`: the secret was used before; `timeout`.
[[nodiscard]] Status join_cluster(const JoinOptions& options, const Secret& secret);

}  // namespace acb::cloud

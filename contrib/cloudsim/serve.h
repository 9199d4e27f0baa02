// SPDX-License-Identifier: Apache-2.0
// The server program.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>

namespace acb::sim {

struct ServeOptions {
  std::filesystem::path scenario;
  std::string listen = "127.0.0.1:0";
  std::string metadata;   ///< "ADDRESS:PORT"; empty: the address of `listen`, any port
  std::string advertise;  ///< the host in URLs; empty: the address of `listen`
  std::filesystem::path cert;
  std::filesystem::path key;
  std::filesystem::path state;
  std::filesystem::path api_key_file;  ///< empty: any bearer key will do
  std::string boot;                    ///< replaces the scenario's boot.command
  std::string destroy;                 ///< replaces the scenario's boot.destroy
};

/// Serves until SIGTERM or SIGINT, then gives everything back. Prints one line of JSON with the
/// URLs once it can be called; the same is in endpoint.json in the state folder. Call it while the
/// process has one thread.
[[nodiscard]] Status serve(const ServeOptions& options);

}  // namespace acb::sim

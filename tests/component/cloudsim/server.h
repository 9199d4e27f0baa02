// SPDX-License-Identifier: Apache-2.0
// A real cloudsim in a temporary folder, with a certificate of its own, and a client of it.
#pragma once

#include "base/json.h"

#include <httplib.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace acb::sim {

inline constexpr const char* kTestKey = "component-test-key";

class Server {
 public:
  /// Starts it with the scenario text and `--boot`, `--destroy`; it serves once this returns.
  Server(const std::string& scenario, const std::string& boot, const std::string& destroy);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Ends it with the signal and returns its exit code.
  int end(int signal);
  /// A client with the key and a time limit of 5 s.
  [[nodiscard]] std::unique_ptr<httplib::SSLClient> client() const;
  /// GET the path as JSON; null when there is no reply.
  [[nodiscard]] Json get(const std::string& path) const;
  /// POST an allocate with these members beside gpu_type, count 1 and duration_min 0.
  [[nodiscard]] httplib::Result allocate(const Json& more, const std::string& key = {}) const;
  /// The reply of the metadata address of an instance.
  [[nodiscard]] httplib::Result metadata(const std::string& instance_id) const;
  /// `cloudsim ARGUMENTS --state DIR`; its output.
  [[nodiscard]] std::string run(std::vector<std::string> arguments) const;
  [[nodiscard]] std::string file(const std::string& name) const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  pid_t pid_ = -1;
  Json endpoint_;
};

/// Asks until it is true, 5 s at most.
[[nodiscard]] bool eventually(const std::function<bool()>& holds);

}  // namespace acb::sim

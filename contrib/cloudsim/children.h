// SPDX-License-Identifier: Apache-2.0
// The processes that stand for rented machines, each in a process group of its own. Nothing here
// blocks: poll() says what has happened since. One thread only.
#pragma once

#include "base/files.h"
#include "cloudsim/guard.h"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace acb::sim {

struct ChildSpec {
  std::string command;          ///< for /bin/sh
  std::string destroy_command;  ///< for /bin/sh; empty: the group is killed and that is all
  std::map<std::string, std::optional<std::string>> environment;
  std::filesystem::path address_file;  ///< the command writes its address there; empty: none
  std::filesystem::path log_file;      ///< its output is appended
};

struct ChildEvent {
  enum class Kind { address, exited, destroyed };
  Kind kind = Kind::exited;
  std::string instance_id;
  std::string address = {};
  int exit_code = 0;
};

class Children {
 public:
  /// The guard must outlive this.
  explicit Children(Guard& guard) : guard_(guard) {}
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  /// Kills what is left.
  ~Children();

  [[nodiscard]] Status start(const std::string& instance_id, ChildSpec spec);
  /// Runs the destroy command, then kills the group; `destroyed` follows in any case, at once for
  /// what is not running.
  void destroy(const std::string& instance_id);
  [[nodiscard]] std::vector<ChildEvent> poll();
  [[nodiscard]] bool empty() const { return children_.empty() && ready_.empty(); }

 private:
  struct Child {
    ChildSpec spec;
    pid_t pid = -1;
    bool exited = false;
    bool addressed = false;
    bool destroying = false;
    pid_t destroyer = -1;
    std::chrono::steady_clock::time_point destroy_deadline = {};
  };
  void poll_child(const std::string& instance_id, Child& child, std::vector<ChildEvent>& events);
  [[nodiscard]] bool poll_destroy(Child& child);
  [[nodiscard]] Result<pid_t> spawn_logged(const ChildSpec& spec, const std::string& command);

  Guard& guard_;
  std::map<std::string, Child> children_;
  std::vector<ChildEvent> ready_;
};

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
// Names of users, for answers that have to come from memory: where names come from, LDAP say, may
// be slow or not answer at all. Thread-safe.
#pragma once

#include "cloudburst/daemon/worker_pool.h"

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace acb::cloud {

class UserNames {
 public:
  /// May block. "": there is no such user; nullopt: nobody can tell just now.
  using LookUp = std::function<std::optional<std::string>(uid_t)>;
  explicit UserNames(LookUp look_up);

  /// Looks the name up in the background, unless it is known. Where that failed, again after a
  /// minute.
  void learn(uid_t uid);
  /// The name, or the number as long as there is none.
  [[nodiscard]] std::string name_of(uid_t uid) const;

 private:
  struct Known {
    std::mutex mutex;
    std::map<uid_t, std::string> names;  ///< "": being looked up, or none
    std::map<uid_t, std::chrono::steady_clock::time_point> failed;
  };
  LookUp look_up_;
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
  WorkerPool worker_{1};
};

/// In the system's user database.
[[nodiscard]] std::optional<std::string> name_in_system(uid_t uid);

}  // namespace acb::cloud

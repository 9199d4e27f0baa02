// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/user_names.h"

#include <pwd.h>

#include <array>
#include <utility>

namespace acb::cloud {

namespace {
constexpr std::chrono::seconds kAskAgain{60};
}

UserNames::UserNames(LookUp look_up) : look_up_(std::move(look_up)) {}

void UserNames::learn(uid_t uid) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(known_->mutex);
    if (const auto failed = known_->failed.find(uid);
        failed != known_->failed.end() && now - failed->second < kAskAgain) {
      return;
    }
    if (!known_->names.try_emplace(uid).second) {
      return;
    }
  }
  worker_.add([known = known_, look_up = look_up_, uid] {
    const std::optional<std::string> name = look_up(uid);
    const std::lock_guard lock(known->mutex);
    if (name) {
      known->names[uid] = *name;
      known->failed.erase(uid);
    } else {
      known->names.erase(uid);
      known->failed[uid] = std::chrono::steady_clock::now();
    }
  });
}

std::string UserNames::name_of(uid_t uid) const {
  const std::lock_guard lock(known_->mutex);
  const auto found = known_->names.find(uid);
  return found == known_->names.end() || found->second.empty() ? std::to_string(uid)
                                                               : found->second;
}

std::optional<std::string> name_in_system(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> space{};
  if (getpwuid_r(uid, &entry, space.data(), space.size(), &found) != 0) {
    return std::nullopt;
  }
  return found == nullptr ? std::string() : std::string(found->pw_name);
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/user_names.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace acb::cloud {
namespace {

bool becomes(const UserNames& names, uid_t uid, const std::string& name) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (names.name_of(uid) != name && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return names.name_of(uid) == name;
}

TEST(UserNames, AreNumbersUntilTheSlowestLookUpHasCome) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  UserNames names([gone](uid_t) {
    gone.wait();
    return std::optional<std::string>("ada");
  });
  names.learn(7);
  EXPECT_EQ(names.name_of(7), "7");
  go.set_value();
  EXPECT_TRUE(becomes(names, 7, "ada"));
}

TEST(UserNames, AreLookedUpOnce) {
  std::atomic<int> asked = 0;
  UserNames names([&](uid_t uid) -> std::optional<std::string> {
    ++asked;
    return uid == 1   ? std::optional<std::string>()  // nobody can tell
           : uid == 2 ? std::string()                 // no such user
                      : "eve";
  });
  for (int round = 0; round < 100; ++round) {
    for (const uid_t uid : {1U, 2U, 3U}) {
      names.learn(uid);
    }
    EXPECT_TRUE(becomes(names, 3, "eve"));
  }
  EXPECT_EQ(names.name_of(1), "1");
  EXPECT_EQ(names.name_of(2), "2");
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace acb::cloud

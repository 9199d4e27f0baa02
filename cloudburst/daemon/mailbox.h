// SPDX-License-Identifier: Apache-2.0
// Work for the reconciling thread, from all others. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace acb::cloud {

class Mailbox {
 public:
  using Letter = std::function<void()>;

  void post(Letter letter) {
    {
      const std::lock_guard lock(mutex_);
      letters_.push_back(std::move(letter));
    }
    changed_.notify_all();
  }
  /// Wakes take() up without a letter.
  void wake() {
    post([] {});
  }
  /// All letters, in order; waits up to `limit` for the first.
  [[nodiscard]] std::vector<Letter> take(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return !letters_.empty(); });
    return std::exchange(letters_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Letter> letters_;
};

}  // namespace acb::cloud

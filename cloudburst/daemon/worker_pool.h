// SPDX-License-Identifier: Apache-2.0
// A few threads that carry out calls which may take long. Work that has not begun when the pool
// ends is dropped; what has begun is waited for as long as `stop` is told, then left to the
// process's end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace acb::cloud {

class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  void add(std::function<void()> work);
  /// Returns whether all threads have ended within `patience`.
  bool stop(std::chrono::milliseconds patience);

 private:
  /// Outlives the pool where a thread hangs.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    int running = 0;
    bool stopping = false;
  };
  static void serve(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
};

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// Threads that share out numbered tasks. Which thread runs which task is left to chance, so a
// task's result must depend on its number alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace acb::train {

class ThreadPool {
 public:
  /// `threads` >= 1, the calling thread included. `at_start` runs once in each of the others.
  explicit ThreadPool(int threads, const std::function<void()>& at_start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(threads_.size()) + 1; }

  /// Calls task(number, worker) for every number below `count`, and returns when all are done.
  /// worker is 0 (the calling thread) to size() - 1; no two tasks of one worker overlap. Tasks must
  /// not throw and must not call run(). One run() at a time.
  void run(std::size_t count, const std::function<void(std::size_t, int)>& task);

 private:
  void work(int worker);
  void take_tasks(int worker);

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable started_;
  std::condition_variable finished_;
  std::size_t generation_ = 0;
  std::size_t working_ = 0;
  bool stopping_ = false;
  const std::function<void(std::size_t, int)>* task_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
};

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/ops/thread_pool.h"

namespace acb::train {

ThreadPool::ThreadPool(int threads, const std::function<void()>& at_start) {
  for (int worker = 1; worker < threads; ++worker) {
    threads_.emplace_back([this, worker, at_start] {
      if (at_start) {
        at_start();
      }
      work(worker);
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  started_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::run(std::size_t count, const std::function<void(std::size_t, int)>& task) {
  if (threads_.empty() || count <= 1) {
    for (std::size_t number = 0; number < count; ++number) {
      task(number, 0);
    }
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    count_ = count;
    next_ = 0;
    working_ = threads_.size();
    ++generation_;
  }
  started_.notify_all();
  take_tasks(0);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return working_ == 0; });
}

void ThreadPool::work(int worker) {
  std::size_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      started_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) {
        return;
      }
      seen = generation_;
    }
    take_tasks(worker);
    const std::lock_guard lock(mutex_);
    if (--working_ == 0) {
      finished_.notify_one();
    }
  }
}

void ThreadPool::take_tasks(int worker) {
  for (std::size_t number = next_++; number < count_; number = next_++) {
    (*task_)(number, worker);
  }
}

}  // namespace acb::train

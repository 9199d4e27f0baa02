// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/worker_pool.h"

#include <utility>

namespace acb::cloud {

WorkerPool::WorkerPool(int threads) : state_(std::make_shared<State>()) {
  state_->running = threads;
  for (int i = 0; i < threads; ++i) {
    // Detached: a call that hangs must not keep the daemon from ending.
    std::thread([state = state_] { serve(state); }).detach();
  }
}

WorkerPool::~WorkerPool() {
  stop(std::chrono::milliseconds(0));
}

void WorkerPool::add(std::function<void()> work) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->queue.push_back(std::move(work));
  }
  state_->changed.notify_one();
}

bool WorkerPool::stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->queue.clear();
  state_->changed.notify_all();
  return state_->changed.wait_for(lock, patience, [&] { return state_->running == 0; });
}

void WorkerPool::serve(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->changed.wait(lock, [&] { return state->stopping || !state->queue.empty(); });
    if (state->stopping) {
      --state->running;
      state->changed.notify_all();
      return;
    }
    const std::function<void()> work = std::move(state->queue.front());
    state->queue.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// Ranks as threads: a message is copied straight from the sender's memory by the receiver.
#include "mpi_runtime/comm/communicator.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace acb::train {

namespace {

struct Message {
  std::span<const std::byte> bytes;
  enum class State { queued, copying, taken } state = State::queued;
};

struct World {
  explicit World(int size)
      : ranks(static_cast<std::size_t>(size)), mail(ranks * ranks), gone(ranks, false) {}
  std::deque<Message*>& mailbox(int from, int to) {
    return mail[static_cast<std::size_t>(from) * ranks + static_cast<std::size_t>(to)];
  }

  std::size_t ranks;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<Message*>> mail;
  std::vector<bool> gone;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ThreadRank(const ThreadRank&) = delete;
  ThreadRank& operator=(const ThreadRank&) = delete;
  ~ThreadRank() override {
    const std::lock_guard lock(world_->mutex);
    world_->gone[static_cast<std::size_t>(rank_)] = true;
    world_->changed.notify_all();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(world_->ranks); }

  [[nodiscard]] Status exchange(std::span<const Send> sends,
                                std::span<const Receive> receives) override {
    std::vector<Message> messages(sends.size());
    std::unique_lock lock(world_->mutex);
    for (std::size_t i = 0; i < sends.size(); ++i) {
      messages[i].bytes = sends[i].bytes;
      world_->mailbox(rank_, sends[i].to).push_back(&messages[i]);
    }
    world_->changed.notify_all();
    Status result;
    for (const Receive& receive : receives) {
      result = take(lock, receive);
      if (!result) {
        break;
      }
    }
    for (std::size_t i = 0; i < sends.size() && result; ++i) {
      result = wait_taken(lock, messages[i], sends[i].to);
    }
    withdraw(lock, sends, messages);
    return result;
  }

 private:
  [[nodiscard]] bool is_gone(int rank) const {
    return world_->gone[static_cast<std::size_t>(rank)];
  }
  static tl::unexpected<Error> lost(int rank) {
    return fail(ErrorCode::unavailable, "communicator: rank " + std::to_string(rank) + " is gone");
  }

  Status take(std::unique_lock<std::mutex>& lock, const Receive& receive) {
    auto& mailbox = world_->mailbox(receive.from, rank_);
    world_->changed.wait(lock, [&] { return !mailbox.empty() || is_gone(receive.from); });
    if (mailbox.empty()) {
      return lost(receive.from);
    }
    Message& message = *mailbox.front();
    if (message.bytes.size() != receive.bytes.size()) {
      return fail(ErrorCode::internal,
                  "communicator: " + std::to_string(message.bytes.size()) + " bytes from rank " +
                      std::to_string(receive.from) + ", expected " +
                      std::to_string(receive.bytes.size()));
    }
    mailbox.pop_front();
    message.state = Message::State::copying;
    lock.unlock();
    std::copy(message.bytes.begin(), message.bytes.end(), receive.bytes.begin());
    lock.lock();
    message.state = Message::State::taken;
    world_->changed.notify_all();
    return {};
  }

  Status wait_taken(std::unique_lock<std::mutex>& lock, const Message& message, int to) {
    world_->changed.wait(lock,
                         [&] { return message.state == Message::State::taken || is_gone(to); });
    return message.state == Message::State::taken ? Status() : Status(lost(to));
  }

  // The messages live on this call's stack: none may be left in a mailbox or under another
  // rank's hands.
  void withdraw(std::unique_lock<std::mutex>& lock,
                std::span<const Send> sends,
                std::span<Message> messages) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      auto& mailbox = world_->mailbox(rank_, sends[i].to);
      mailbox.erase(std::remove(mailbox.begin(), mailbox.end(), &messages[i]), mailbox.end());
      world_->changed.wait(lock, [&] { return messages[i].state != Message::State::copying; });
    }
  }

  std::shared_ptr<World> world_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_ranks(int size) {
  const auto world = std::make_shared<World>(size);
  std::vector<std::unique_ptr<Communicator>> ranks;
  ranks.reserve(world->ranks);
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<ThreadRank>(world, rank));
  }
  return ranks;
}

}  // namespace acb::train

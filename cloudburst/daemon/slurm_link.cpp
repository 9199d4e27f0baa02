// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/slurm_link.h"

#include "cloudburst/daemon/check.h"

#include <spdlog/spdlog.h>

#include <deque>
#include <thread>
#include <utility>

namespace acb::cloud {

namespace {

/// Between looks at slurmctld, whoever wants them.
constexpr std::chrono::milliseconds kLeastPeriod{100};

Status carry_out(SlurmClient& client, const Call& call) {
  switch (call.kind) {
    case CallKind::set_address:
      return client.set_address(call.nodes.front(), call.text);
    case CallKind::set_down:
      return client.set_down(call.nodes, call.text);
    case CallKind::power_down_force:
      return client.power_down_force(call.nodes, call.text);
    case CallKind::resume:
      return client.resume(call.nodes);
    case CallKind::requeue:
      return client.requeue(call.job);
    case CallKind::set_start:
      return client.set_start(call.job, call.at);
    case CallKind::set_comment:
      return client.set_comment(call.job, call.text);
    case CallKind::create:
    case CallKind::look_up:
    case CallKind::get:
    case CallKind::release:
    case CallKind::list:
    case CallKind::offers:
      break;
  }
  return fail(ErrorCode::internal, "slurm: not a call to Slurm: " + call.subject());
}

}  // namespace

/// Outlives the link where a call hangs.
struct SlurmLink::State {
  State(SlurmClient the_client,
        std::map<std::string, std::string> the_twins,
        std::function<void(Seen)> the_seen)
      : client(std::move(the_client)), twins(std::move(the_twins)), seen(std::move(the_seen)) {}
  SlurmClient client;
  const std::map<std::string, std::string> twins;
  std::function<void(Seen)> seen;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Call> queue;
  std::chrono::milliseconds period{200};
  bool look = true;
  bool stopping = false;
  bool ended = false;
  bool checked = false;  ///< whether Slurm's configuration fits ours; the link's thread alone
};

SlurmLink::SlurmLink(SlurmClient client,
                     std::map<std::string, std::string> twins,
                     std::function<void(Seen)> seen)
    : state_(std::make_shared<State>(std::move(client), std::move(twins), std::move(seen))) {
  std::thread([state = state_] {
    serve(*state);
    const std::lock_guard lock(state->mutex);
    state->ended = true;
    state->changed.notify_all();
  }).detach();
}

SlurmLink::~SlurmLink() {
  stop(std::chrono::milliseconds(0));
}

void SlurmLink::add(Call call) {
  const std::lock_guard lock(state_->mutex);
  state_->queue.push_back(std::move(call));
  state_->changed.notify_all();
}

void SlurmLink::look() {
  const std::lock_guard lock(state_->mutex);
  state_->look = true;
  state_->changed.notify_all();
}

void SlurmLink::set_period(std::chrono::milliseconds period) {
  const std::lock_guard lock(state_->mutex);
  if (period < state_->period) {
    state_->changed.notify_all();
  }
  state_->period = period;
}

bool SlurmLink::stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  return state_->changed.wait_for(lock, patience, [&] { return state_->ended; });
}

void SlurmLink::serve(State& state) {
  std::vector<Call> done;
  std::vector<Call> refused;
  std::unique_lock lock(state.mutex);
  while (!state.stopping) {
    while (!state.queue.empty() && !state.stopping) {
      const Call call = std::move(state.queue.front());
      state.queue.pop_front();
      lock.unlock();
      if (const auto carried = carry_out(state.client, call); carried) {
        spdlog::info("slurm: {} {}", call.subject(), call.text);
        done.push_back(call);
      } else {
        spdlog::warn("{}", carried.error().message);
        refused.push_back(call);
      }
      lock.lock();
    }
    state.look = false;
    lock.unlock();
    auto picture = state.client.load();
    const bool seen = picture.has_value();
    if (seen && !state.checked) {
      state.checked = true;
      for (const std::string& fault : faults_of_site(state.client, state.twins, *picture)) {
        spdlog::error("{}", fault);
      }
    }
    state.seen({std::move(picture),
                seen ? std::exchange(done, {}) : std::vector<Call>(),
                seen ? std::exchange(refused, {}) : std::vector<Call>()});
    lock.lock();
    const auto looked = std::chrono::steady_clock::now();
    state.changed.wait_until(
        lock, looked + kLeastPeriod, [&] { return state.stopping || !state.queue.empty(); });
    const auto until = looked + state.period;
    state.changed.wait_until(lock, until, [&] {
      return state.stopping || state.look || !state.queue.empty() ||
             std::chrono::steady_clock::now() + state.period < until;
    });
  }
}

}  // namespace acb::cloud

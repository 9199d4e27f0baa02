// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/report/reporter.h"

#include "base/text.h"
#include "mpi_runtime/report/channel.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

namespace acb::train {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectLimit{10};
constexpr std::chrono::seconds kDoneLimit{5};

class SilentReporter final : public Reporter {
 public:
  void step(std::int64_t, double) override {}
  void saved(std::string_view, std::int64_t, double) override {}
  [[nodiscard]] Status done(std::int64_t) override { return {}; }
  void give_up(std::string_view) override {}
  [[nodiscard]] std::optional<SaveAndExit> save_and_exit() const override { return std::nullopt; }
  [[nodiscard]] bool connected() const override { return false; }
};

class ConnectedReporter final : public Reporter {
 public:
  ConnectedReporter(Channel channel, UniqueFd wake)
      : channel_(std::move(channel)), wake_(std::move(wake)) {
    // The thread must not take signals meant for the rank.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ConnectedReporter(const ConnectedReporter&) = delete;
  ConnectedReporter& operator=(const ConnectedReporter&) = delete;
  ~ConnectedReporter() override {
    thread_.request_stop();
    wake();
  }

  void step(std::int64_t step, double loss) override {
    post({{"type", "step"}, {"step", step}, {"loss", loss}});
  }
  void saved(std::string_view level, std::int64_t step, double seconds) override {
    post({{"type", "saved"}, {"level", level}, {"step", step}, {"seconds", seconds}});
  }
  [[nodiscard]] Status done(std::int64_t step) override {
    post({{"type", "done"}, {"step", step}});
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kDoneLimit, [&] { return done_heard_ || broken_; });
    if (!done_heard_) {
      return fail(ErrorCode::unavailable, "report: done: the supervisor did not confirm it");
    }
    return {};
  }
  void give_up(std::string_view reason) override {
    // A line has its limit, and a reason at length is in the rank's own output.
    post({{"type", "give-up"}, {"reason", reason.substr(0, kLineLimit / 4)}});
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kDoneLimit, [&] { return done_heard_ || broken_; });
  }
  [[nodiscard]] std::optional<SaveAndExit> save_and_exit() const override {
    const std::scoped_lock lock(mutex_);
    return order_;
  }
  [[nodiscard]] bool connected() const override {
    const std::scoped_lock lock(mutex_);
    return !broken_;
  }

 private:
  void post(Json message) {
    {
      const std::scoped_lock lock(mutex_);
      if (broken_) {
        return;
      }
      outgoing_.push_back(std::move(message));
    }
    wake();
  }

  void wake() const {
    const std::uint64_t one = 1;
    // A full counter has woken the thread already, so the result says nothing.
    [[maybe_unused]] const ssize_t wrote = ::write(wake_.get(), &one, sizeof one);
  }

  void run(const std::stop_token& stop) {
    Status state;
    Clock::time_point next_alive = Clock::now();
    // What was posted before the stop is still sent.
    while (state && (!stop.stop_requested() || has_outgoing())) {
      if (Clock::now() >= next_alive) {
        state = channel_.send({{"type", "alive"}});
        next_alive = Clock::now() + kAliveInterval;
      }
      if (state) {
        state = send_outgoing();
      }
      if (state) {
        state = receive_orders();
      }
      if (state && !stop.stop_requested()) {
        wait_until(next_alive);
      }
    }
    if (!state) {
      spdlog::warn("{}; training goes on without a supervisor", state.error().message);
      const std::scoped_lock lock(mutex_);
      broken_ = true;
      changed_.notify_all();
    }
  }

  [[nodiscard]] bool has_outgoing() const {
    const std::scoped_lock lock(mutex_);
    return !outgoing_.empty();
  }

  [[nodiscard]] Status send_outgoing() {
    std::deque<Json> messages;
    {
      const std::scoped_lock lock(mutex_);
      messages.swap(outgoing_);
    }
    for (const Json& message : messages) {
      ACB_TRY(channel_.send(message));
    }
    return {};
  }

  [[nodiscard]] Status receive_orders() {
    ACB_TRY_ASSIGN(const std::vector<Json> messages, channel_.receive());
    for (const Json& message : messages) {
      const std::string type = json_or<std::string>(message, "type", "");
      const std::scoped_lock lock(mutex_);
      if (type == "save-and-exit") {
        const auto seconds =
            std::chrono::duration<double>(json_or<double>(message, "deadline_s", 0));
        order_ = {Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds),
                  json_or<std::string>(message, "reason", "")};
      } else if (type == "done-heard") {
        done_heard_ = true;
        changed_.notify_all();
      }
    }
    return {};
  }

  void wait_until(Clock::time_point next_alive) const {
    std::array<pollfd, 2> pollers{{{channel_.fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_alive - Clock::now());
    if (::poll(pollers.data(),
               pollers.size(),
               static_cast<int>(std::max<long long>(left.count(), 0))) > 0 &&
        (pollers[1].revents & POLLIN) != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
    }
  }

  Channel channel_;  // used by thread_ alone
  UniqueFd wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Json> outgoing_;
  std::optional<SaveAndExit> order_;
  bool done_heard_ = false;
  bool broken_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

std::string environment_or(const char* name, std::string fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::move(fallback) : value;
}

}  // namespace

ReportEnvironment report_environment() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) {
    host = {"localhost"};
  }
  ReportEnvironment env;
  env.supervisor = environment_or("AUTOCLOUD_SUPERVISOR", "");
  env.secret = environment_or("AUTOCLOUD_SECRET", "");
  env.node = environment_or("SLURMD_NODENAME", host.data());
  env.memory = environment_or("AUTOCLOUD_MEMORY", "");
  const auto start =
      parse_integer("AUTOCLOUD_START", environment_or("AUTOCLOUD_START", "0"), 0, 1 << 30);
  env.start = start ? static_cast<int>(*start) : 0;
  return env;
}

Result<std::unique_ptr<Reporter>> Reporter::connect(const ReportEnvironment& env,
                                                    int rank,
                                                    int size) {
  if (env.supervisor.empty()) {
    return std::make_unique<SilentReporter>();
  }
  if (env.secret.empty()) {
    return fail(ErrorCode::denied,
                "report: AUTOCLOUD_SUPERVISOR is set and AUTOCLOUD_SECRET is not: is the "
                "environment passed to remote ranks?");
  }
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) {
    return fail_errno("report: eventfd");
  }
  const Hello hello{ClientKind::rank, env.node, rank, size, env.start};
  ACB_TRY_ASSIGN(Channel channel, Channel::open(env.supervisor, env.secret, hello, kConnectLimit));
  return std::make_unique<ConnectedReporter>(std::move(channel), std::move(wake));
}

}  // namespace acb::train

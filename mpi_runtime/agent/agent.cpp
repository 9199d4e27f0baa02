// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/agent/agent.h"

#include "base/files.h"
#include "base/text.h"
#include "mpi_runtime/agent/leftover.h"
#include "mpi_runtime/agent/memory_folder.h"
#include "mpi_runtime/report/channel.h"
#include "mpi_runtime/supervise/slurm_commands.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <random>
#include <thread>

namespace acb::train {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectLimit{30};
// Longer than a process needs to die, shorter than the supervisor's patience (Policy::clear).
constexpr std::chrono::milliseconds kClearLimit{500};

// Milliseconds between the first and the last node that tells Slurm.
constexpr unsigned kMostApart = 600;

// A rank maps its segment at once after making it.
constexpr std::chrono::seconds kSegmentAge{2};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

class Agent {
 public:
  Agent(const AgentSettings& settings, Channel channel, int signal_fd)
      : settings_(settings), channel_(std::move(channel)), signal_fd_(signal_fd) {}

  void run() {
    Clock::time_point next_alive = Clock::now();
    heard_ = next_alive;
    Status state;
    while (state && !ended_) {
      if (Clock::now() >= next_alive) {
        state = beat();
        next_alive += kAliveInterval;
      }
      if (state) {
        wait_until(next_alive);
        state = receive();
      }
      if (state) {
        state = look_for_silence();
      }
    }
    if (!state) {
      spdlog::warn("{}; ending this node's ranks", state.error().message);
    }
    if (!end_leftovers(settings_.run, std::numeric_limits<int>::max(), std::chrono::seconds(5))) {
      spdlog::error("agent: {}: ranks do not end", settings_.node);
    }
    if (host_lost_ && !settings_.job.empty()) {
      // The job's other nodes find the same at the same time: most of them then see it said.
      std::this_thread::sleep_for(std::chrono::milliseconds(std::random_device()() % kMostApart));
      if (const Status told = slurm_report_lost_host(settings_.job); !told) {
        spdlog::error("agent: {}: {}", settings_.node, told.error().message);
      }
    }
    remove_dead_segments("/dev/shm", host_name(), kSegmentAge);
  }

 private:
  [[nodiscard]] Status beat() {
    ACB_TRY(channel_.send({{"type", "alive"}}));
    if (noticed_) {
      return {};
    }
    const auto content = read_file(settings_.notice, 65536);
    const auto left =
        content ? notice_left(*content, std::chrono::system_clock::now()) : std::nullopt;
    if (!left) {
      return {};
    }
    noticed_ = true;
    return channel_.send({{"type", "notice"}, {"deadline_s", left->count()}});
  }

  void wait_until(Clock::time_point time) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
    std::array<pollfd, 2> pollers{{{channel_.fd(), POLLIN, 0}, {signal_fd_, POLLIN, 0}}};
    if (::poll(pollers.data(), pollers.size(), static_cast<int>(std::max<long long>(left, 0))) >
            0 &&
        pollers[1].revents != 0) {
      signalfd_siginfo taken{};
      terminated_ = ::read(signal_fd_, &taken, sizeof taken) > 0;
    }
  }

  [[nodiscard]] Status receive() {
    if (std::exchange(terminated_, false)) {
      // It stays: the ranks still have to save, and the supervisor says when all is over.
      ACB_TRY(channel_.send({{"type", "terminate"}, {"reason", "SIGTERM"}}));
    }
    ACB_TRY_ASSIGN(const std::vector<Json> messages, channel_.receive());
    for (const Json& message : messages) {
      heard_ = Clock::now();
      const std::string type = json_or<std::string>(message, "type", "");
      if (type == "clear") {
        clearing_ = json_or<int>(message, "start", 0);
      } else if (type == "end") {
        ended_ = true;
      }
    }
    return clear();
  }

  // A supervisor that hangs (a file server that does not answer, a debugger) is waited for; one
  // whose host does not even answer for it has given this node up by now.
  [[nodiscard]] Status look_for_silence() {
    const auto silent = Clock::now() - heard_;
    if (silent > settings_.orphaned) {
      return fail(ErrorCode::unavailable, "agent: the supervisor is silent");
    }
    if (silent <= settings_.silence || Clock::now() < next_look_) {
      return {};
    }
    host_lost_ = !host_answers(settings_.supervisor, settings_.answer);
    next_look_ = Clock::now() + settings_.silence;
    if (host_lost_) {
      return fail(ErrorCode::unavailable, "agent: the supervisor's host does not answer");
    }
    return {};
  }

  // Tried again with every beat while something does not end, so that the supervisor still hears
  // us.
  [[nodiscard]] Status clear() {
    if (clearing_ > 0 && end_leftovers(settings_.run, clearing_, kClearLimit)) {
      const int start = std::exchange(clearing_, 0);
      return channel_.send({{"type", "clear"}, {"start", start}});
    }
    return {};
  }

  const AgentSettings& settings_;
  Channel channel_;
  int signal_fd_;
  Clock::time_point heard_;
  Clock::time_point next_look_;
  bool host_lost_ = false;
  int clearing_ = 0;
  bool noticed_ = false;
  bool terminated_ = false;
  bool ended_ = false;
};

}  // namespace

Status run_agent(const AgentSettings& settings, int signal_fd) {
  std::optional<MemoryFolder> folder;
  if (!settings.memory.empty()) {
    sweep_memory_folders(std::filesystem::path(settings.memory).parent_path());
    ACB_TRY_ASSIGN(folder, MemoryFolder::create(memory_folder(settings.memory, settings.node)));
  }
  const Hello hello{ClientKind::agent, settings.node, -1, 0, 0};
  ACB_TRY_ASSIGN(Channel channel,
                 Channel::open(settings.supervisor, settings.secret, hello, kConnectLimit));
  Agent(settings, std::move(channel), signal_fd).run();
  return {};
}

std::optional<std::chrono::duration<double>> notice_left(
    const std::string& content, std::chrono::system_clock::time_point now) {
  const auto json = parse_json("notice", content);
  if (!json) {
    return std::nullopt;
  }
  const auto deadline = parse_time("notice", json_or<std::string>(*json, "deadline", ""));
  if (!deadline) {
    return std::nullopt;
  }
  return std::max(std::chrono::duration<double>(*deadline - now), std::chrono::duration<double>(0));
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/children.h"

#include "base/process.h"
#include "base/text.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <utility>

namespace acb::sim {

namespace {

using Clock = std::chrono::steady_clock;

// The wait status of a child that has ended.
std::optional<int> ended(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) == pid) {
    return status;
  }
  return std::nullopt;
}

}  // namespace

Children::~Children() {
  for (auto& [id, child] : children_) {
    if (child.destroyer > 0) {
      ::kill(-child.destroyer, SIGKILL);
      ::waitpid(child.destroyer, nullptr, 0);
    }
    ::kill(-child.pid, SIGKILL);
    if (!child.exited) {
      ::waitpid(child.pid, nullptr, 0);
    }
  }
}

Result<pid_t> Children::spawn_logged(const ChildSpec& spec, const std::string& command) {
  const UniqueFd log(
      ::open(spec.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) {
    return fail_errno("opening " + spec.log_file.string());
  }
  ProcessSpec process;
  process.arguments = {"/bin/sh", "-c", command};
  process.environment = spec.environment;
  process.output_fd = log.get();
  process.own_group = true;
  return spawn(process);
}

Status Children::start(const std::string& instance_id, ChildSpec spec) {
  ACB_TRY_ASSIGN(const pid_t pid, spawn_logged(spec, spec.command));
  Child& child = children_[instance_id];
  child.spec = std::move(spec);
  child.pid = pid;
  child.addressed = child.spec.address_file.empty();
  return guard_.watch(instance_id, {pid, child.spec.destroy_command, child.spec.environment});
}

void Children::destroy(const std::string& instance_id) {
  const auto found = children_.find(instance_id);
  if (found == children_.end()) {
    ready_.push_back({ChildEvent::Kind::destroyed, instance_id});
    return;
  }
  Child& child = found->second;
  if (child.destroying) {
    return;
  }
  child.destroying = true;
  child.destroy_deadline = Clock::now() + kDestroyLimit;
  if (child.spec.destroy_command.empty()) {
    return;
  }
  if (const auto pid = spawn_logged(child.spec, child.spec.destroy_command)) {
    child.destroyer = *pid;
  } else {
    spdlog::error("destroy {}: {}", instance_id, pid.error().message);
  }
}

// True once nothing of the child is left.
bool Children::poll_destroy(Child& child) {
  if (child.destroyer > 0) {
    if (Clock::now() >= child.destroy_deadline) {
      ::kill(-child.destroyer, SIGKILL);
    }
    if (!ended(child.destroyer)) {
      return false;
    }
    child.destroyer = -1;
  }
  ::kill(-child.pid, SIGKILL);
  return child.exited;
}

void Children::poll_child(const std::string& instance_id,
                          Child& child,
                          std::vector<ChildEvent>& events) {
  if (!child.addressed && !child.destroying) {
    if (const auto address = read_file(child.spec.address_file, 256)) {
      child.addressed = true;
      events.push_back({ChildEvent::Kind::address, instance_id, std::string(trim(*address))});
    }
  }
  if (child.exited) {
    return;
  }
  if (const auto status = ended(child.pid)) {
    child.exited = true;
    events.push_back({ChildEvent::Kind::exited, instance_id, {}, exit_code_of(*status)});
  }
}

std::vector<ChildEvent> Children::poll() {
  std::vector<ChildEvent> events = std::exchange(ready_, {});
  for (auto each = children_.begin(); each != children_.end();) {
    auto& [id, child] = *each;
    poll_child(id, child, events);
    if (!child.destroying || !poll_destroy(child)) {
      ++each;
      continue;
    }
    if (const auto told = guard_.forget(id); !told) {
      spdlog::error("guard: {}", told.error().message);
    }
    events.push_back({ChildEvent::Kind::destroyed, id});
    each = children_.erase(each);
  }
  return events;
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/guard.h"

#include "base/json.h"
#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace acb::sim {

namespace {

void cut(const Booted& booted) {
  if (!booted.destroy_command.empty()) {
    ProcessSpec spec;
    spec.arguments = {"/bin/sh", "-c", booted.destroy_command};
    spec.environment = booted.environment;
    // Nobody is left to tell of a command that fails; the group is killed either way.
    (void)run_process(std::move(spec), kDestroyLimit);
  }
  ::kill(-booted.group, SIGKILL);
}

void take_line(const std::string& line, std::map<std::string, Booted>& watched) {
  const auto message = parse_json("guard", line);
  if (!message) {
    return;
  }
  const auto id = json_or(*message, "instance_id", std::string());
  if (!message->contains("group")) {
    watched.erase(id);
    return;
  }
  Booted booted;
  booted.group = json_or(*message, "group", pid_t{0});
  booted.destroy_command = json_or(*message, "destroy", std::string());
  for (const auto& [name, value] : (*message)["environment"].items()) {
    booted.environment[name] = value.get<std::string>();
  }
  watched[id] = std::move(booted);
}

[[noreturn]] void run_guard(int fd) {
  ::setsid();  // out of reach of the terminal's Ctrl-C
  ::prctl(PR_SET_NAME, "cloudsim-guard");
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGINT, SIG_IGN);
  std::map<std::string, Booted> watched;
  std::string pending;
  std::string buffer(4096, '\0');
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    pending.append(buffer, 0, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = pending.find('\n')) != std::string::npos;) {
      take_line(pending.substr(0, end), watched);
      pending.erase(0, end + 1);
    }
  }
  for (const auto& [id, booted] : watched) {
    cut(booted);
  }
  ::_exit(0);
}

}  // namespace

Result<Guard> Guard::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail_errno("guard: pipe");
  }
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return fail_errno("guard: fork");
  }
  if (pid == 0) {
    writer.reset();
    run_guard(reader.get());
  }
  return Guard(std::move(writer), pid);
}

Guard::~Guard() {
  if (!pipe_) {
    return;
  }
  pipe_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status Guard::watch(const std::string& instance_id, const Booted& booted) {
  Json environment = Json::object();
  for (const auto& [name, value] : booted.environment) {
    environment[name] = value.value_or("");
  }
  const Json message = {{"instance_id", instance_id},
                        {"group", booted.group},
                        {"destroy", booted.destroy_command},
                        {"environment", environment}};
  return write_all(pipe_.get(), dump_json(message) + "\n");
}

Status Guard::forget(const std::string& instance_id) {
  return write_all(pipe_.get(), dump_json({{"instance_id", instance_id}}) + "\n");
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_slurm.h"

#include <algorithm>

namespace acb::cloud {

namespace {
constexpr auto kHold = std::chrono::seconds(121);
constexpr auto kSuspendTimeout = std::chrono::seconds(5);
constexpr auto kResumeTimeout = std::chrono::seconds(200);
constexpr auto kSlurmdTimeout = std::chrono::seconds(60);
constexpr const char* kOwnNode = "own-0";

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
}  // namespace

FakeSlurm::FakeSlurm(int nodes, WallTime now) {
  own.name = kOwnNode;
  for (int i = 0; i < nodes; ++i) {
    SlurmNode node;
    node.name = "burst-" + std::to_string(i);
    node.address = node.name;
    node.powered_down = true;
    nodes_[node.name] = node;
    since_[node.name] = now;
  }
}

std::uint32_t FakeSlurm::submit(int wants, std::chrono::seconds runs, WallTime now) {
  const auto id = static_cast<std::uint32_t>(jobs_.size() + 1);
  Job job;
  job.seen.id = id;
  job.seen.uid = 1000;
  job.seen.batch = true;
  job.seen.admin_comment =
      "autocloud:v1 burst=" + std::to_string(wants) + " own=1 gpu=a100-80gb market=spot";
  job.seen.submit = now;
  job.seen.begin = now;
  job.seen.time_limit = std::chrono::hours(1);
  job.wants = wants;
  job.runs = runs;
  jobs_[id] = job;
  return id;
}

void FakeSlurm::leave(Job& job, const std::string& name, WallTime now) {
  std::erase(job.seen.nodes, name);
  if (const auto node = nodes_.find(name); node != nodes_.end()) {
    node->second.allocated = false;
  }
  (void)now;
}

void FakeSlurm::send_back(Job& job, WallTime now) {
  for (const std::string& name : std::vector<std::string>(job.seen.nodes)) {
    leave(job, name, now);
  }
  job.seen.phase = JobPhase::pending;
  ++job.seen.restart;
  job.seen.submit = now;  // as Slurm does at every requeue
  job.seen.begin = now + kHold;
  job.seen.batch_host.clear();
}

void FakeSlurm::cancel(std::uint32_t id) {
  Job& job = jobs_.at(id);
  if (job.seen.phase == JobPhase::ended) {
    return;
  }
  for (const std::string& name : std::vector<std::string>(job.seen.nodes)) {
    leave(job, name, {});
  }
  job.seen.phase = JobPhase::ended;
}

void FakeSlurm::place(Job& job, WallTime now) {
  // Machines that are on or boot first, as Slurm's weights have it.
  std::vector<std::string> free;
  for (const bool off : {false, true}) {
    for (const auto& [name, node] : nodes_) {
      if (!node.allocated && !node.down && !node.powering_down && node.powered_down == off) {
        free.push_back(name);
      }
    }
  }
  if (std::cmp_less(free.size(), job.wants)) {
    return;
  }
  free.resize(static_cast<std::size_t>(job.wants));
  std::vector<std::string> resumed;
  bool boots = false;
  for (const std::string& name : free) {
    SlurmNode& node = nodes_.at(name);
    node.allocated = true;
    if (node.powered_down) {
      node.powered_down = false;
      node.powering_up = true;
      since_[name] = now;
      resumed.push_back(name);
    }
    boots = boots || node.powering_up;
  }
  job.seen.nodes = free;
  job.seen.nodes.insert(job.seen.nodes.begin(), kOwnNode);
  job.seen.batch_host = kOwnNode;
  job.seen.phase = boots ? JobPhase::configuring : JobPhase::running;
  job.started = now;
  job.starts += boots ? 0 : 1;
  if (!resumed.empty()) {
    order("resume", resumed, now);
  }
}

void FakeSlurm::step(WallTime now, const std::function<bool(const std::string&)>& booted) {
  for (auto& [name, node] : nodes_) {
    const auto waited = now - since_[name];
    if (node.powering_down && waited >= kSuspendTimeout) {
      node.powering_down = false;
      node.powered_down = true;
      node.address = name;
    } else if (node.powering_up && booted(name)) {
      node.powering_up = false;
    } else if (node.powering_up && waited >= kResumeTimeout) {
      node.powering_up = false;
      node.powered_down = true;
      node.down = true;
      node.reason = "ResumeTimeout reached";
      for (auto& [id, job] : jobs_) {
        if (has(job.seen.nodes, name)) {
          send_back(job, now);
        }
      }
      order("resumefail", {name}, now);
    } else if (!node.powering_up && !node.powered_down && !node.powering_down) {
      if (booted(name)) {
        since_[name] = now;
      } else if (waited >= kSlurmdTimeout && !node.down) {
        set_down({name}, "Not responding", now);
      }
    }
  }
  for (auto& [id, job] : jobs_) {
    if (job.seen.phase == JobPhase::pending && !job.seen.held && job.seen.begin <= now) {
      place(job, now);
    } else if (job.seen.phase == JobPhase::configuring) {
      const bool ready =
          std::none_of(job.seen.nodes.begin(), job.seen.nodes.end(), [&](const std::string& name) {
            return nodes_.contains(name) && nodes_.at(name).powering_up;
          });
      if (ready) {
        job.seen.phase = JobPhase::running;
        job.started = now;
        ++job.starts;
      }
    } else if (job.seen.phase == JobPhase::running && !job.seen.batch_host.empty() &&
               has(job.seen.nodes, job.seen.batch_host) && now - job.started >= job.runs) {
      for (const std::string& name : std::vector<std::string>(job.seen.nodes)) {
        leave(job, name, now);
      }
      job.seen.phase = JobPhase::ended;
    }
  }
}

void FakeSlurm::power_down_force(const std::vector<std::string>& names, WallTime now) {
  for (const std::string& name : names) {
    for (auto& [id, job] : jobs_) {
      if (!has(job.seen.nodes, name)) {
        continue;
      }
      if (job.seen.phase == JobPhase::configuring) {
        send_back(job, now);
      } else {
        leave(job, name, now);
      }
    }
    SlurmNode& node = nodes_.at(name);
    node.powering_up = false;
    node.powered_down = false;
    node.powering_down = true;
    node.down = false;
    since_[name] = now;
  }
  order("suspend", names, now);
}

void FakeSlurm::set_down(const std::vector<std::string>& names,
                         const std::string& reason,
                         WallTime now) {
  for (const std::string& name : names) {
    if (name == kOwnNode) {
      own = BatchHost{.name = kOwnNode};  // the next start is on another one
    } else {
      nodes_.at(name).down = true;
      nodes_.at(name).reason = reason;
    }
    for (auto& [id, job] : jobs_) {
      if (has(job.seen.nodes, name)) {
        if (job.seen.phase == JobPhase::configuring) {
          send_back(job, now);
        } else {
          leave(job, name, now);
        }
      }
    }
  }
}

void FakeSlurm::resume(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    nodes_.at(name).down = false;
  }
}

void FakeSlurm::requeue(std::uint32_t id, WallTime now) {
  Job& job = jobs_.at(id);
  if (job.seen.phase == JobPhase::configuring || job.seen.phase == JobPhase::running) {
    send_back(job, now);
  }
}

void FakeSlurm::set_start(std::uint32_t id, WallTime at) {
  if (Job& job = jobs_.at(id); job.seen.phase == JobPhase::pending) {
    job.seen.begin = at;
  }
}

void FakeSlurm::set_comment(std::uint32_t id, const std::string& comment) {
  jobs_.at(id).seen.admin_comment = comment;
}

void FakeSlurm::set_address(const std::string& name, const std::string& address) {
  nodes_.at(name).address = address;
}

void FakeSlurm::lose_batch_host(std::uint32_t id) {
  std::erase(jobs_.at(id).seen.nodes, kOwnNode);
}

void FakeSlurm::set_user_comment(std::uint32_t id, const std::string& comment) {
  jobs_.at(id).seen.comment = comment;
}

void FakeSlurm::order(const std::string& kind,
                      const std::vector<std::string>& hosts,
                      WallTime now) {
  HookOrder order;
  order.name = std::to_string(++order_number_) + "-" + kind;
  order.kind = kind;
  order.hosts = hosts;
  order.at = now;
  orders_.push_back(order);
}

std::vector<HookOrder> FakeSlurm::take_orders() {
  return std::exchange(orders_, {});
}

SlurmPicture FakeSlurm::picture(WallTime now) const {
  SlurmPicture picture;
  picture.at = now;
  for (const auto& [name, node] : nodes_) {
    picture.nodes.push_back(node);
  }
  picture.batch_hosts.push_back(own);
  for (const auto& [id, job] : jobs_) {
    picture.jobs.push_back(job.seen);
  }
  return picture;
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// A model of slurmctld's power saving in memory, as measured on 22.05: nodes stay "idle#" when
// their job is cancelled and are given to the next without a resume, power_down_force requeues
// configuring jobs with a hold of 121 s, ResumeTimeout ends in DOWN+POWERED_DOWN without a suspend.
#pragma once

#include "cloudburst/plan/view.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace acb::cloud {

class FakeSlurm {
 public:
  struct Job {
    SlurmJob seen;
    int wants = 0;
    std::chrono::seconds runs{30};
    WallTime started{};
    int starts = 0;
  };

  FakeSlurm(int nodes, WallTime now);
  std::uint32_t submit(int wants, std::chrono::seconds runs, WallTime now);
  void cancel(std::uint32_t job);

  /// `booted` says whether a machine under this node name is there to register, or still answers.
  void step(WallTime now, const std::function<bool(const std::string&)>& booted);

  void power_down_force(const std::vector<std::string>& names, WallTime now);
  void set_down(const std::vector<std::string>& names, const std::string& reason, WallTime now);
  void resume(const std::vector<std::string>& names);
  void requeue(std::uint32_t job, WallTime now);
  void set_start(std::uint32_t job, WallTime at);
  void set_comment(std::uint32_t job, const std::string& comment);
  void set_address(const std::string& name, const std::string& address);
  /// The batch host leaves the job, as when an own node dies.
  void lose_batch_host(std::uint32_t job);
  /// What the job's user has written.
  void set_user_comment(std::uint32_t job, const std::string& comment);
  /// The own node of all jobs: as slurmctld sees it.
  BatchHost own;

  [[nodiscard]] SlurmPicture picture(WallTime now) const;
  [[nodiscard]] const std::map<std::uint32_t, Job>& jobs() const { return jobs_; }
  [[nodiscard]] const std::map<std::string, SlurmNode>& nodes() const { return nodes_; }
  /// Orders of the hooks since the last call.
  [[nodiscard]] std::vector<HookOrder> take_orders();

 private:
  void place(Job& job, WallTime now);
  void leave(Job& job, const std::string& node, WallTime now);
  void send_back(Job& job, WallTime now);
  void order(const std::string& kind, const std::vector<std::string>& hosts, WallTime now);

  std::map<std::uint32_t, Job> jobs_;
  std::map<std::string, SlurmNode> nodes_;
  std::map<std::string, WallTime> since_;  ///< of powering up or down, or of silence
  std::vector<HookOrder> orders_;
  int order_number_ = 0;
};

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/slurm/slurm_client.h"

#include "cloudburst/plan/label.h"
#include "cloudburst/slurm/hostlist.h"
#include "cloudburst/slurm/releases.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

namespace acb::cloud {

namespace {

tl::unexpected<Error> fail_slurm(const std::string& what) {
  const int code = errno;
  const std::string message = "slurm: " + what + ": " + slurm_strerror(code);
  switch (code) {
    case ESLURM_INVALID_JOB_ID:
    case ESLURM_INVALID_NODE_NAME:
      return fail(ErrorCode::not_found, message);
    case ESLURM_ACCESS_DENIED:
    case ESLURM_USER_ID_MISSING:
      return fail(ErrorCode::denied, message);
    default:
      return fail(ErrorCode::unavailable, message);
  }
}

std::string text_of(const char* text) {
  return text == nullptr ? std::string() : text;
}
WallTime time_of(time_t time) {
  return WallTime(std::chrono::seconds(time));
}

JobPhase phase_of(std::uint32_t state) {
  if ((state & JOB_COMPLETING) != 0) {
    return JobPhase::completing;
  }
  switch (state & JOB_STATE_BASE) {
    case JOB_PENDING:
      return JobPhase::pending;
    case JOB_RUNNING:
      return (state & JOB_CONFIGURING) != 0 ? JobPhase::configuring : JobPhase::running;
    case JOB_SUSPENDED:
      return JobPhase::running;
    default:
      return JobPhase::ended;
  }
}

std::vector<std::string> hosts_of(const char* text) {
  return expand_hosts(text_of(text)).value_or(std::vector<std::string>());
}

/// squeue's words for what bursts wait for; the function that has them all is in no public header.
std::string reason_of(const slurm_job_info_t& info) {
  if (info.state_desc != nullptr) {
    return info.state_desc;
  }
  switch (info.state_reason) {
    case WAIT_PRIORITY:
      return "Priority";
    case WAIT_DEPENDENCY:
      return "Dependency";
    case WAIT_RESOURCES:
      return "Resources";
    case WAIT_PART_NODE_LIMIT:
      return "PartitionNodeLimit";
    case WAIT_PART_TIME_LIMIT:
      return "PartitionTimeLimit";
    case WAIT_PART_DOWN:
      return "PartitionDown";
    case WAIT_PART_INACTIVE:
      return "PartitionInactive";
    case WAIT_HELD:
      return "JobHeldAdmin";
    case WAIT_HELD_USER:
      return "JobHeldUser";
    case WAIT_TIME:
      return "BeginTime";
    case WAIT_LICENSES:
      return "Licenses";
    case WAIT_NODE_NOT_AVAIL:
      return "ReqNodeNotAvail";
    case WAIT_QOS:
      return "InvalidQOS";
    case WAIT_ACCOUNT:
      return "InvalidAccount";
    case FAIL_BAD_CONSTRAINTS:
      return "BadConstraints";
    default:
      return {};
  }
}

SlurmJob job_of(const slurm_job_info_t& info) {
  SlurmJob job;
  job.id = info.job_id;
  job.restart = info.restart_cnt;
  job.uid = info.user_id;
  job.phase = phase_of(info.job_state);
  job.held = info.priority == 0;
  job.waits = job.phase == JobPhase::pending ? reason_of(info) : std::string();
  job.batch = info.batch_flag != 0;
  job.nodes = hosts_of(info.nodes);
  job.batch_host = text_of(info.batch_host);
  job.admin_comment = text_of(info.admin_comment);
  job.comment = text_of(info.comment);
  job.submit = time_of(info.submit_time);
  if (info.eligible_time > 0) {
    job.begin = time_of(info.eligible_time);
  }
  if (info.time_limit != INFINITE && info.time_limit != NO_VAL) {
    job.time_limit = std::chrono::minutes(info.time_limit);
  }
  return job;
}

SlurmNode node_of(const node_info_t& info) {
  const std::uint32_t base = info.node_state & NODE_STATE_BASE;
  const auto has = [&](std::uint32_t flag) { return (info.node_state & flag) != 0; };
  SlurmNode node;
  node.name = text_of(info.name);
  node.address = text_of(info.node_addr);
  node.reason = text_of(info.reason);
  node.down = base == NODE_STATE_DOWN;
  node.allocated =
      base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED || has(NODE_STATE_COMPLETING);
  node.powered_down = has(NODE_STATE_POWERED_DOWN);
  node.powering_up = has(NODE_STATE_POWERING_UP);
  node.powering_down = has(NODE_STATE_POWERING_DOWN) || has(NODE_STATE_POWER_DOWN);
  node.responding = !has(NODE_STATE_NO_RESPOND);
  return node;
}

struct FreeJobs {
  void operator()(job_info_msg_t* message) const { slurm_free_job_info_msg(message); }
};
struct FreeNodes {
  void operator()(node_info_msg_t* message) const { slurm_free_node_info_msg(message); }
};

}  // namespace

/// The last answers: slurmctld says "no change" instead of sending them again.
class SlurmClient::Messages {
 public:
  Status refresh() {
    node_info_msg_t* nodes = nullptr;
    if (slurm_load_node(nodes_ ? nodes_->last_update : 0, &nodes, kShowAll) == SLURM_SUCCESS) {
      nodes_.reset(nodes);
    } else if (errno != SLURM_NO_CHANGE_IN_DATA) {
      return fail_slurm("loading nodes");
    }
    job_info_msg_t* jobs = nullptr;
    if (slurm_load_jobs(jobs_ ? jobs_->last_update : 0, &jobs, kShowAll) == SLURM_SUCCESS) {
      jobs_.reset(jobs);
    } else if (errno != SLURM_NO_CHANGE_IN_DATA) {
      return fail_slurm("loading jobs");
    }
    return {};
  }

  [[nodiscard]] SlurmPicture picture(const std::unordered_set<std::string>& ours) const {
    SlurmPicture picture;
    for (std::uint32_t i = 0; i < nodes_->record_count; ++i) {
      const node_info_t& info = nodes_->node_array[i];
      if (info.name != nullptr && ours.contains(info.name)) {
        picture.nodes.push_back(node_of(info));
      }
    }
    for (std::uint32_t i = 0; i < jobs_->record_count; ++i) {
      const slurm_job_info_t& info = jobs_->job_array[i];
      const bool is_burst = parse_label(text_of(info.admin_comment)).has_value();
      const JobPhase phase = phase_of(info.job_state);
      if (!is_burst && (phase == JobPhase::pending || phase == JobPhase::ended)) {
        continue;
      }
      SlurmJob job = job_of(info);
      const bool has_ours = std::any_of(job.nodes.begin(), job.nodes.end(), [&](const auto& node) {
        return ours.contains(node);
      });
      if (is_burst || has_ours) {
        picture.jobs.push_back(std::move(job));
      }
    }
    picture.batch_hosts = batch_hosts(picture.jobs);
    return picture;
  }

 private:
  /// Those of the bursts that run.
  [[nodiscard]] std::vector<BatchHost> batch_hosts(const std::vector<SlurmJob>& jobs) const {
    std::map<std::string, BatchHost> hosts;
    for (const SlurmJob& job : jobs) {
      if (job.batch && job.phase == JobPhase::running && parse_label(job.admin_comment)) {
        hosts[job.batch_host].name = job.batch_host;
      }
    }
    if (hosts.empty()) {
      return {};
    }
    for (std::uint32_t i = 0; i < nodes_->record_count; ++i) {
      if (const auto host = hosts.find(text_of(nodes_->node_array[i].name)); host != hosts.end()) {
        const SlurmNode node = node_of(nodes_->node_array[i]);
        host->second.down = node.down;
        host->second.responding = node.responding;
      }
    }
    std::map<std::string, int> users;
    for (std::uint32_t i = 0; i < jobs_->record_count; ++i) {
      const slurm_job_info_t& info = jobs_->job_array[i];
      const JobPhase phase = phase_of(info.job_state);
      if (phase != JobPhase::pending && phase != JobPhase::ended) {
        for (const std::string& node : hosts_of(info.nodes)) {
          ++users[node];
        }
      }
    }
    std::vector<BatchHost> found;
    for (auto& [name, host] : hosts) {
      host.shared = users[name] > 1;
      found.push_back(std::move(host));
    }
    return found;
  }

  std::unique_ptr<node_info_msg_t, FreeNodes> nodes_;
  std::unique_ptr<job_info_msg_t, FreeJobs> jobs_;
};

namespace {

/// The name and reason are only read by the call, which takes them as char*.
Status update_nodes(const std::vector<std::string>& nodes,
                    const std::string& what,
                    std::string reason,
                    update_node_msg_t message) {
  std::string names = compress_hosts(nodes);
  message.node_names = names.data();
  if (!reason.empty()) {
    message.reason = reason.data();
  }
  if (slurm_update_node(&message) != SLURM_SUCCESS) {
    return fail_slurm(what + " " + names);
  }
  return {};
}

update_node_msg_t node_message(std::uint32_t state) {
  update_node_msg_t message;
  slurm_init_update_node_msg(&message);
  message.node_state = state;
  return message;
}

/// Errors of single jobs come in a list beside the return code.
Status result_of(int code, job_array_resp_msg_t* answers, const std::string& what) {
  int error = code == SLURM_SUCCESS ? 0 : errno;
  if (answers != nullptr) {
    for (std::uint32_t i = 0; i < answers->job_array_count && error == 0; ++i) {
      error = static_cast<int>(answers->error_code[i]);
    }
    slurm_free_job_array_resp(answers);
  }
  if (error == 0) {
    return {};
  }
  errno = error;
  return fail_slurm(what);
}

Status update_job(std::uint32_t job, const std::string& what, job_desc_msg_t& message) {
  std::string id = std::to_string(job);
  name_job(message, id.data());
  job_array_resp_msg_t* answers = nullptr;
  const int code = slurm_update_job2(&message, &answers);
  return result_of(code, answers, what + " " + id);
}

}  // namespace

SlurmClient::SlurmClient(std::vector<std::string> our_nodes)
    : ours_(our_nodes.begin(), our_nodes.end()), messages_(std::make_unique<Messages>()) {}
SlurmClient::SlurmClient(SlurmClient&&) noexcept = default;
SlurmClient& SlurmClient::operator=(SlurmClient&&) noexcept = default;
SlurmClient::~SlurmClient() = default;

SlurmClient SlurmClient::open(std::vector<std::string> our_nodes) {
  slurm_init(nullptr);
  return SlurmClient(std::move(our_nodes));
}

Result<SlurmPicture> SlurmClient::load() {
  const WallTime at = wall_now();
  ACB_TRY(messages_->refresh());
  SlurmPicture picture = messages_->picture(ours_);
  picture.at = at;
  return picture;
}

std::vector<std::string> SlurmClient::missing(const SlurmPicture& picture) const {
  std::set<std::string> names(ours_.begin(), ours_.end());
  for (const SlurmNode& node : picture.nodes) {
    names.erase(node.name);
  }
  return {names.begin(), names.end()};
}

Status SlurmClient::set_address(const std::string& node, const std::string& address) {
  update_node_msg_t message;
  slurm_init_update_node_msg(&message);
  std::string addr = address;
  message.node_addr = addr.data();
  return update_nodes({node}, "setting the address of", "", message);
}

Status SlurmClient::set_down(const std::vector<std::string>& nodes, const std::string& reason) {
  return update_nodes(nodes, "setting down", reason, node_message(NODE_STATE_DOWN));
}

Status SlurmClient::power_down_force(const std::vector<std::string>& nodes,
                                     const std::string& reason) {
  return update_nodes(nodes, "powering down", reason, node_message(kPowerDownForce));
}

Status SlurmClient::resume(const std::vector<std::string>& nodes) {
  return update_nodes(nodes, "resuming", "", node_message(NODE_RESUME));
}

Status SlurmClient::requeue(std::uint32_t job) {
  std::string id = std::to_string(job);
  job_array_resp_msg_t* answers = nullptr;
  const int code = slurm_requeue2(id.data(), 0, &answers);
  return result_of(code, answers, "requeueing job " + id);
}

Status SlurmClient::set_start(std::uint32_t job, WallTime at) {
  job_desc_msg_t message;
  slurm_init_job_desc_msg(&message);
  message.begin_time =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(at));
  return update_job(job, "setting the start of job", message);
}

Status SlurmClient::set_comment(std::uint32_t job, const std::string& comment) {
  job_desc_msg_t message;
  slurm_init_job_desc_msg(&message);
  std::string text = comment;
  message.admin_comment = text.data();
  return update_job(job, "commenting on job", message);
}

}  // namespace acb::cloud

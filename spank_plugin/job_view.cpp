// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/job_view.h"

#include "spank_plugin/slurm_text.h"

#include <utility>

namespace acb::spank {

namespace {

std::optional<std::uint32_t> given(std::uint32_t value) {
  return value == NO_VAL ? std::nullopt : std::optional(value);
}

std::optional<std::uint16_t> given(std::uint16_t value) {
  return value == NO_VAL16 ? std::nullopt : std::optional(value);
}

}  // namespace

JobRequest request_of(const job_desc_msg_t& job) {
  JobRequest request;
  request.batch = job.script != nullptr;
  request.label = entries_of(job.spank_job_env, job.spank_job_env_size);
  request.partition = text_or_empty(job.partition);
  request.features = text_or_empty(job.features);
  request.batch_features = text_or_empty(job.batch_features);
  request.prefer = text_or_empty(job.prefer);
  request.required_nodes = text_or_empty(job.req_nodes);
  request.excluded_nodes = text_or_empty(job.exc_nodes);
  request.reservation = text_or_empty(job.reservation);
  request.array = text_or_empty(job.array_inx);
  request.per_job = text_or_empty(job.tres_per_job);
  request.per_socket = text_or_empty(job.tres_per_socket);
  request.per_task = text_or_empty(job.tres_per_task);
  request.min_nodes = given(job.min_nodes);
  request.max_nodes = given(job.max_nodes);
  request.tasks = given(job.num_tasks);
  request.min_cpus = given(job.min_cpus);
  request.tasks_per_node = given(job.ntasks_per_node);
  request.tasks_per_gpu = given(job.ntasks_per_tres);
  if (const auto requeue = given(job.requeue)) {
    request.requeue = *requeue != 0;
  }
  request.infinite_time = job.time_limit == INFINITE;
  request.open_mode_given = job.open_mode != 0;
  request.heterogeneous = job.het_job_offset != NO_VAL;
  request.scrontab = (job.bitflags & CRON_JOB) != 0;
  request.contiguous = given(job.contiguous).value_or(0) != 0;
  request.switches = given(job.req_switch).value_or(0) != 0;
  return request;
}

JobChange change_of(const job_desc_msg_t& job) {
  JobChange change;
  change.partition = text_or_empty(job.partition);
  const std::pair<bool, std::string_view> fixed[] = {
      {job.partition != nullptr, "partition"},
      {job.features != nullptr, "features"},
      {job.prefer != nullptr, "preferred features"},
      {job.batch_features != nullptr, "batch features"},
      {job.min_nodes != NO_VAL || job.max_nodes != NO_VAL, "nodes"},
      {job.req_nodes != nullptr || job.exc_nodes != nullptr, "node list"},
      {job.reservation != nullptr, "reservation"},
      {job.num_tasks != NO_VAL || job.ntasks_per_node != NO_VAL16, "tasks"},
      {job.min_cpus != NO_VAL || job.max_cpus != NO_VAL, "CPUs"},
      {job.tres_per_job != nullptr || job.tres_per_node != nullptr ||
           job.tres_per_socket != nullptr || job.tres_per_task != nullptr,
       "GPUs"}};
  for (const auto& [asked, name] : fixed) {
    if (asked) {
      change.fixed = name;
      break;
    }
  }
  return change;
}

void apply(const Rewrite& rewrite, job_desc_msg_t& job) {
  assign(job.partition, rewrite.partition);
  assign(job.features, rewrite.features);
  assign(job.admin_comment, rewrite.admin_comment);
  if (rewrite.batch_features) {
    assign(job.batch_features, *rewrite.batch_features);
  }
  job.min_nodes = rewrite.nodes;
  job.max_nodes = rewrite.nodes;
  job.num_tasks = rewrite.tasks.value_or(job.num_tasks);
  job.ntasks_per_node = rewrite.tasks_per_node.value_or(job.ntasks_per_node);
  job.min_cpus = rewrite.min_cpus.value_or(job.min_cpus);
  job.kill_on_node_fail = 0;
  job.wait_all_nodes = 1;
  if (rewrite.requeue) {
    job.requeue = *rewrite.requeue ? 1 : 0;
  }
  if (rewrite.append_output) {
    job.open_mode = OPEN_MODE_APPEND;
  }
  for (const std::string& name : rewrite.drop) {
    remove_variable(job.environment, job.env_size, name);
  }
  for (const auto& [name, value] : rewrite.set) {
    set_variable(job.environment, job.env_size, name, value);
  }
}

}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
// What becomes of a submitted or changed job: pure functions over a view of the request, so that
// tables test them without Slurm. job_submit_plugin.cpp maps Slurm's job description to and from
// these.
#pragma once

#include "spank_plugin/site_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace acb::spank {

/// A request as the client sent it. Empty texts and absent numbers were not given.
struct JobRequest {
  bool batch = true;                    ///< false: salloc, or srun as an allocator
  std::vector<std::string_view> label;  ///< the job's control environment, "NAME=VALUE"
  std::string partition;
  std::string features;
  std::string batch_features;
  std::string prefer;
  std::string required_nodes;
  std::string excluded_nodes;
  std::string reservation;
  std::string array;
  std::string per_job;  ///< GRES and other countable resources by what they are counted per
  std::string per_socket;
  std::string per_task;
  std::optional<std::uint32_t> min_nodes;
  std::optional<std::uint32_t> max_nodes;
  std::optional<std::uint32_t> tasks;
  std::optional<std::uint32_t> min_cpus;
  std::optional<std::uint16_t> tasks_per_node;
  std::optional<std::uint16_t> tasks_per_gpu;
  std::optional<bool> requeue;
  bool infinite_time = false;
  bool open_mode_given = false;
  bool heterogeneous = false;
  bool scrontab = false;
  bool contiguous = false;
  bool switches = false;
};

enum class RefusalKind { bad_request, forbidden, no_config };

/// Why a job is not taken, in the user's words, and what to write instead.
struct Refusal {
  RefusalKind kind = RefusalKind::bad_request;
  std::string message;
};

/// The job stays as it is, byte for byte.
struct Untouched {};

/// What to set in the job. Absent values stay as they are. Besides these, every burst gets
/// kill_on_node_fail off and wait_all_nodes on.
struct Rewrite {
  std::string partition;
  std::string features;
  std::optional<std::string> batch_features;
  std::uint32_t nodes = 0;  ///< least and most
  std::optional<std::uint32_t> tasks;
  /// Of a count in all, which Slurm may share out as 4, 1 and 1 otherwise.
  std::optional<std::uint16_t> tasks_per_node;
  std::optional<std::uint32_t> min_cpus;
  std::optional<bool> requeue;
  bool append_output = false;
  std::string admin_comment;
  /// The batch script's environment: names to drop, and names to set (to what the record says).
  std::vector<std::string> drop;
  std::vector<std::pair<std::string, std::string>> set;
};

using Decision = std::variant<Untouched, Refusal, Rewrite>;
[[nodiscard]] Decision decide_submit(const JobRequest& request, const Site& site);

/// A change of a job, as scontrol update sends it.
struct JobChange {
  bool privileged = false;  ///< root or SlurmUser: may do anything
  std::string partition = {};
  /// The first of the things asked for that a burst's record depends on: "partition", "features",
  /// "nodes", "tasks", ...; empty for none.
  std::string_view fixed = {};
};
/// Moves into a twin are refused whatever the job is.
[[nodiscard]] std::optional<Refusal> decide_move(const JobChange& change, const Site& site);
/// Whether it must be known if the job is a burst, which costs reading a file.
[[nodiscard]] bool needs_ownership(const JobChange& change);
[[nodiscard]] Refusal refuse_change_of_burst(const JobChange& change);

}  // namespace acb::spank

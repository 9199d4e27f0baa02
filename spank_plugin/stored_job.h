// SPDX-License-Identifier: Apache-2.0
// Whether a job known to slurmctld is a burst. job_modify gets the job as a record that no public
// header describes, and may not ask slurmctld over the network. What it can read is the environment
// that slurmctld keeps on disk for each batch job, into which job_submit has put the label.
#pragma once

#include <cstdint>
#include <filesystem>

namespace acb::spank {

/// Reads <state>/hash.<id % 10>/job.<id>/environment (slurmctld/job_mgr.c, _copy_job_desc_to_file).
/// No for a job without one: salloc's. A user who forges the variable in a job of his own only
/// shuts himself out.
[[nodiscard]] bool is_stored_burst(const std::filesystem::path& state_folder, std::uint32_t job_id);

}  // namespace acb::spank

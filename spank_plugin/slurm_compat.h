// SPDX-License-Identifier: Apache-2.0
// What differs between Slurm releases, and what slurmctld offers to plugins but no public header
// declares. The prototypes are the same in 22.05 to 26.05 (src/common/xmalloc.h, xstring.h).
#pragma once

#include "spank_plugin/slurm_headers.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" {
// Whatever is put into a job description must come from these, since slurmctld frees it.
void* slurm_xcalloc(std::size_t count,
                    std::size_t size,
                    bool clear,
                    bool may_fail,
                    const char* file,
                    int line,
                    const char* function);
void slurm_xfree(void** item);
char* slurm_xstrdup(const char* text);
// slurmctld's settings; their type is in slurm.h. Weak, so that the plugin loads where there are
// none.
extern slurm_conf_t slurm_conf __attribute__((weak));
}

namespace acb::spank {

// job_modify tells its reason from 23.02 on; in 22.05 the user reads the error code's text alone.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#define ACB_JOB_MODIFY_MESSAGE , char** message
#define ACB_JOB_MODIFY_MESSAGE_VALUE message
#else
#define ACB_JOB_MODIFY_MESSAGE
#define ACB_JOB_MODIFY_MESSAGE_VALUE nullptr
#endif

/// The job id of a change; 0 where it names none. scontrol sends it as text ("12", "12_3"), other
/// clients as a number.
[[nodiscard]] inline std::uint32_t job_id_of(const job_desc_msg_t& job) {
  if (job.job_id_str != nullptr) {
    return static_cast<std::uint32_t>(std::strtoul(job.job_id_str, nullptr, 10));
  }
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
  return job.step_id.job_id == NO_VAL ? 0 : job.step_id.job_id;
#else
  return job.job_id == NO_VAL ? 0 : job.job_id;
#endif
}

}  // namespace acb::spank

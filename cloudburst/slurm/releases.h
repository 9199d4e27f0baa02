// SPDX-License-Identifier: Apache-2.0
// What differs between Slurm's releases, for the two files that include slurm.h.
#pragma once

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>

#include <cstdint>

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(22, 5, 0)
#error "Slurm 22.05 or later is needed"
#endif

namespace acb::cloud {

/// What scontrol sends for state=power_down_force: it ends every job on the node (21.08 and later).
inline constexpr std::uint32_t kPowerDownForce = NODE_STATE_POWER_DOWN | NODE_STATE_POWERED_DOWN;

/// SHOW_* became 64 bits wide in 24.11, the parameter did not.
inline constexpr std::uint16_t kShowAll = static_cast<std::uint16_t>(SHOW_ALL | SHOW_DETAIL);

/// 25.11 replaced job_desc_msg_t::job_id; the text form is in all releases.
inline void name_job(job_desc_msg_t& message, char* job_id) {
  message.job_id_str = job_id;
}

}  // namespace acb::cloud

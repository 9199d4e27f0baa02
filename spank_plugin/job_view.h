// SPDX-License-Identifier: Apache-2.0
// Slurm's job description to and from the views of decide.h.
#pragma once

#include "spank_plugin/decide.h"
#include "spank_plugin/slurm_compat.h"

namespace acb::spank {

/// The label's views die with the description.
[[nodiscard]] JobRequest request_of(const job_desc_msg_t& job);
[[nodiscard]] JobChange change_of(const job_desc_msg_t& job);
void apply(const Rewrite& rewrite, job_desc_msg_t& job);

}  // namespace acb::spank

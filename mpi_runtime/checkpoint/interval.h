// SPDX-License-Identifier: Apache-2.0
// How often to save to disk: from what a save costs, how often the job is hit, and how often a
// notice leaves time for a last save. Pure functions.
#pragma once

#include <cstdint>

namespace acb::train {

/// What has happened to a run so far, over all of its starts. Losses are counted as incidents:
/// nodes taken together are one.
struct IncidentHistory {
  double up_s = 0;                 ///< training time in all, the current start included
  std::int64_t incidents = 0;      ///< ends that nobody in the job chose
  std::int64_t saved_in_time = 0;  ///< incidents whose notice led to a committed save
};

/// Mean time between incidents in seconds: posterior mean under a Gamma prior worth two incidents
/// an hour apart, so that time without an incident (censored up-time) counts as what it is.
[[nodiscard]] double mean_time_between_incidents(const IncidentHistory& history);

/// Probability that the next incident comes with time to save: posterior mean under Beta(1, 1).
[[nodiscard]] double notice_probability(const IncidentHistory& history);

/// sqrt(2 C M / (1 - p)): Young's interval (CACM 1974) with only the incidents counted that cost
/// work. `stall_s` is C, the pause that training sees, not the write beside it. Never below
/// `write_s` (one save in flight at most) and never above an hour.
[[nodiscard]] double save_interval(double stall_s, double write_s, const IncidentHistory& history);

}  // namespace acb::train

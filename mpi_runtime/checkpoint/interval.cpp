// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/interval.h"

#include <algorithm>
#include <cmath>

namespace acb::train {

namespace {
constexpr double kPriorIncidents = 2;
constexpr double kPriorMeanSeconds = 3600;
constexpr double kLongestSeconds = 3600;
}  // namespace

double mean_time_between_incidents(const IncidentHistory& history) {
  return (kPriorIncidents * kPriorMeanSeconds + history.up_s) /
         (kPriorIncidents + static_cast<double>(history.incidents));
}

double notice_probability(const IncidentHistory& history) {
  return (1 + static_cast<double>(history.saved_in_time)) /
         (2 + static_cast<double>(history.incidents));
}

double save_interval(double stall_s, double write_s, const IncidentHistory& history) {
  const double young = std::sqrt(2 * stall_s * mean_time_between_incidents(history) /
                                 (1 - notice_probability(history)));
  return std::max(write_s, std::min(young, kLongestSeconds));
}

}  // namespace acb::train

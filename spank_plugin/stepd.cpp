// SPDX-License-Identifier: Apache-2.0
// slurmstepd: what a burst's tasks see. The label is read from the job's environment, where it
// survives --export=NONE; the options would not.
#include "spank_plugin/contexts.h"
#include "spank_plugin/registration.h"

#include <unistd.h>

#include <array>
#include <string_view>

namespace acb::spank::stepd {

namespace {

constexpr const char* kRentedMark = "/run/autocloud-burst/rented";

/// Fixed, since task_init runs between fork and exec of a process with threads.
using Value = std::array<char, 128>;

bool read(spank_t spank, const char* name, Value& value) {
  return spank_getenv(spank, name, value.data(), static_cast<int>(value.size())) == ESPANK_SUCCESS;
}

int set(spank_t spank, const char* name, const char* value) {
  if (spank_setenv(spank, name, value, 1) != ESPANK_SUCCESS) {
    slurm_error("autocloud: environment: %s: refused by Slurm", name);
    return -1;
  }
  return 0;
}

int pass_on(spank_t spank, const char* from, const char* to) {
  Value value{};
  return read(spank, from, value) ? set(spank, to, value.data()) : 0;
}

int on_option(int /*id*/, const char* /*text*/, int /*remote*/) noexcept {
  return 0;  // judged in sbatch; comes twice, or not at all with --export=NONE
}

}  // namespace

int init(spank_t spank, const Arguments& arguments) {
  // Registered, so that Slurm takes the options' own variables out of the script's environment.
  return register_options(spank, parse_plugin_arguments(arguments).value_or(Limits{}), on_option);
}

int task_init(spank_t spank) {
  Value burst{};
  if (!read(spank, "SLURM_SPANK_AUTOCLOUD_BURST", burst)) {
    return 0;
  }
  Value restart{'0'};
  if (!read(spank, "SLURM_RESTART_COUNT", restart)) {
    restart = Value{'0'};
  }
  const bool rented = access(kRentedMark, F_OK) == 0;
  const int results[] = {set(spank, "AUTOCLOUD_BURST", burst.data()),
                         pass_on(spank, "SLURM_SPANK_AUTOCLOUD_GPU", "AUTOCLOUD_GPU"),
                         pass_on(spank, "SLURM_SPANK_AUTOCLOUD_MARKET", "AUTOCLOUD_MARKET"),
                         set(spank, "AUTOCLOUD_RESTART", restart.data()),
                         set(spank, "AUTOCLOUD_NODE", rented ? "cloud" : "onprem")};
  for (const int result : results) {
    if (result != 0) {
      return -1;
    }
  }
  return 0;
}

}  // namespace acb::spank::stepd

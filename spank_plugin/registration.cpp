// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/registration.h"

#include "base/text.h"
#include "spank_plugin/label.h"

#include <cstdlib>

namespace acb::spank {

namespace {

// Slurm's name for an option in the environment: plugin and option, '-' as '_' (plugstack.c,
// _opt_env_name). It comes twice: bare for the nodes, and with SLURM_SPANK_ for srun in the job.
constexpr const char* kOptionVariables[] = {"_SLURM_SPANK_OPTION_autocloud_autocloud_burst",
                                            "_SLURM_SPANK_OPTION_autocloud_autocloud_gpu",
                                            "_SLURM_SPANK_OPTION_autocloud_autocloud_market"};
constexpr const char* kLabelVariables[] = {kLabelBurst, kLabelGpu, kLabelMarket};
constexpr const char* kTaskVariables[] = {"AUTOCLOUD_RESTART", "AUTOCLOUD_NODE"};

int add(
    spank_t spank, OptionId id, const char* argument, std::string usage, spank_opt_cb_f callback) {
  // Slurm copies all of it. The fields are not const there.
  std::string name(name_of(id).substr(2));
  std::string argument_copy(argument);
  spank_option option{
      name.data(), argument_copy.data(), usage.data(), 1, static_cast<int>(id), callback};
  if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
    slurm_error("autocloud: registering --%s: refused by Slurm", name.c_str());
    return -1;
  }
  return 0;
}

void drop(spank_t spank, const char* name) {
  unsetenv(name);
  unsetenv((kJobPrefix + std::string(name)).c_str());
  static_cast<void>(spank_job_control_unsetenv(spank, name));  // absent is as well
}

}  // namespace

std::string_view name_of(OptionId id) {
  switch (id) {
    case OptionId::burst:
      return kBurstOption;
    case OptionId::gpu:
      return kGpuOption;
    case OptionId::market:
      return kMarketOption;
  }
  return "";
}

int register_options(spank_t spank, const Limits& limits, spank_opt_cb_f callback) {
  const std::string types =
      limits.gpu_types.empty() ? "such as a100-80gb" : "one of " + join(limits.gpu_types, ", ");
  const int burst =
      add(spank,
          OptionId::burst,
          "N",
          "rent N cloud nodes for this job, 1 to " + std::to_string(limits.max_nodes) +
              ", beside the own nodes of --nodes (default 1)",
          callback);
  const int gpu = add(spank,
                      OptionId::gpu,
                      "TYPE",
                      "GPU type of the rented nodes, " + types + " (default: the site's)",
                      callback);
  const int market = add(spank,
                         OptionId::market,
                         "MARKET",
                         "how to rent: spot (cheaper, may be taken away) or on-demand (default: "
                         "the site's)",
                         callback);
  return burst == 0 && gpu == 0 && market == 0 ? 0 : -1;
}

void drop_inherited(spank_t spank, Inherited what) {
  for (const char* name : kOptionVariables) {
    drop(spank, name);
  }
  if (what == Inherited::options) {
    return;
  }
  for (const char* name : kLabelVariables) {
    drop(spank, name);
  }
  for (const char* name : kTaskVariables) {
    unsetenv(name);
  }
}

}  // namespace acb::spank

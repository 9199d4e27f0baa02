// SPDX-License-Identifier: Apache-2.0
// srun: its step would be made for the nodes of its own command line, so that a burst under it
// would leave the rented nodes idle.
#include "spank_plugin/contexts.h"
#include "spank_plugin/registration.h"

#include <cstdlib>

namespace acb::spank::srun {

namespace {

int on_option(int id, const char* text, int /*remote*/) noexcept {
  const std::string_view option = name_of(static_cast<OptionId>(id));
  slurm_error(
      "autocloud: %.*s: '%s': not in srun; start the job with sbatch %.*s=... or salloc %.*s=..., "
      "and srun its steps inside",
      static_cast<int>(option.size()),
      option.data(),
      text == nullptr ? "" : text,
      static_cast<int>(option.size()),
      option.data(),
      static_cast<int>(option.size()),
      option.data());
  return -1;
}

}  // namespace

int init(spank_t spank, const Arguments& arguments) {
  const bool step = std::getenv("SLURM_JOB_ID") != nullptr || std::getenv("SLURM_JOBID") != nullptr;
  // A burst's steps find the job's options in their environment and shall not take them for their
  // own; the label stays, since the tasks' environment is made from it.
  drop_inherited(spank, step ? Inherited::options : Inherited::options_and_label);
  return register_options(spank, parse_plugin_arguments(arguments).value_or(Limits{}), on_option);
}

}  // namespace acb::spank::srun

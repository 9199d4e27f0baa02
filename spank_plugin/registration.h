// SPDX-License-Identifier: Apache-2.0
// The options as Slurm knows them.
#pragma once

#include "spank_plugin/options.h"
#include "spank_plugin/slurm_headers.h"

namespace acb::spank {

/// Registers the options for --help and the parser. The callback is called once for each value that
/// Slurm finds: in #SBATCH lines, then in the environment, then on the command line.
[[nodiscard]] int register_options(spank_t spank, const Limits& limits, spank_opt_cb_f callback);

/// Which option a callback is about: what Slurm hands back as `val`.
enum class OptionId : int { burst = 1, gpu, market };
[[nodiscard]] std::string_view name_of(OptionId id);

/// What jobs hand to what is submitted from inside them.
enum class Inherited {
  options,            ///< the options, which Slurm would take for given anew
  options_and_label,  ///< and all that says that the job is a burst
};
/// Takes it out of this process' environment and out of the control environment that Slurm made
/// from that.
void drop_inherited(spank_t spank, Inherited what);

}  // namespace acb::spank

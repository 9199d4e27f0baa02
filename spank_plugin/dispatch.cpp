// SPDX-License-Identifier: Apache-2.0
// spank_autocloud.so: every symbol that Slurm looks up, and which context's code answers.
#include "spank_plugin/boundary.h"
#include "spank_plugin/contexts.h"

namespace {

acb::spank::Arguments arguments_of(int count, char** values) {
  return {values, values + count};
}

}  // namespace

extern "C" {

// Declared first: a const at namespace scope is invisible outside its file otherwise, and Slurm
// says "not a plugin".
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
const char plugin_name[] = "autocloud";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;

int slurm_spank_init(spank_t spank, int count, char* values[]) {
  return acb::spank::guarded(-1, [&] {
    switch (spank_context()) {
      case S_CTX_ALLOCATOR:
        return acb::spank::allocator::init(spank, arguments_of(count, values));
      case S_CTX_LOCAL:
        return acb::spank::srun::init(spank, arguments_of(count, values));
      case S_CTX_REMOTE:
        return acb::spank::stepd::init(spank, arguments_of(count, values));
      case S_CTX_SLURMD:
      case S_CTX_JOB_SCRIPT:
      case S_CTX_ERROR:
        break;
    }
    return 0;
  });
}

int slurm_spank_init_post_opt(spank_t spank, int /*count*/, char* /*values*/[]) {
  return acb::spank::guarded(-1, [&] {
    return spank_context() == S_CTX_ALLOCATOR ? acb::spank::allocator::init_post_opt(spank) : 0;
  });
}

int slurm_spank_task_init(spank_t spank, int /*count*/, char* /*values*/[]) {
  return acb::spank::guarded(-1, [&] { return acb::spank::stepd::task_init(spank); });
}

}  // extern "C"

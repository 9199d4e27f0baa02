// SPDX-License-Identifier: Apache-2.0
// sbatch and salloc. A value is only noted when Slurm hands it over, since a later one may replace
// it, and judged once all are there.
#include "spank_plugin/contexts.h"
#include "spank_plugin/label.h"
#include "spank_plugin/registration.h"

#include <cstdlib>

namespace acb::spank::allocator {

namespace {

struct State {
  Result<Limits> limits = Limits{};
  OptionValues values;
};
State& state() {
  static State instance;
  return instance;
}

void note(OptionId id, const char* text) {
  OptionValues& values = state().values;
  switch (id) {
    case OptionId::burst:
      values.burst = text;
      break;
    case OptionId::gpu:
      values.gpu = text;
      break;
    case OptionId::market:
      values.market = text;
      break;
  }
}

int on_option(int id, const char* text, int /*remote*/) noexcept {
  try {
    note(static_cast<OptionId>(id), text == nullptr ? "" : text);
    return 0;
  } catch (...) {
    slurm_error("autocloud: out of memory");
    return -1;
  }
}

bool inside_a_job() {
  return std::getenv("SLURM_JOB_ID") != nullptr || std::getenv("SLURM_JOBID") != nullptr ||
         std::getenv("SLURM_SPANK_AUTOCLOUD_BURST") != nullptr;
}

int label(spank_t spank, const char* name, const std::string& value) {
  if (spank_job_control_setenv(spank, name, value.c_str(), 1) != ESPANK_SUCCESS) {
    slurm_error("autocloud: labelling the job: %s: refused by Slurm", name);
    return -1;
  }
  return 0;
}

int refuse(spank_t spank, const Error& error) {
  slurm_error("autocloud: %s", error.message.c_str());
  // Where plugstack.conf says `optional`, Slurm goes on after a -1. The label then carries the
  // wrong value to job_submit, which refuses it in the same words; one without N is none.
  static_cast<void>(label(spank, kLabelBurst, state().values.burst.value_or("")));
  return -1;
}

}  // namespace

int init(spank_t spank, const Arguments& arguments) {
  state() = State{.limits = parse_plugin_arguments(arguments), .values = {}};
  if (inside_a_job()) {
    drop_inherited(spank, Inherited::options_and_label);
  }
  return register_options(spank, state().limits.value_or(Limits{}), on_option);
}

int init_post_opt(spank_t spank) {
  const OptionValues& values = state().values;
  if (!values.burst && !values.gpu && !values.market) {
    return 0;  // also where the plugin's arguments are wrong: other jobs shall not suffer for it
  }
  if (!state().limits) {
    return refuse(spank, state().limits.error());
  }
  const auto options = parse_options(values, *state().limits);
  if (!options) {
    return refuse(spank, options.error());
  }
  int done = label(spank, kLabelBurst, std::to_string((*options)->nodes));
  if (done == 0 && (*options)->gpu) {
    done = label(spank, kLabelGpu, *(*options)->gpu);
  }
  if (done == 0 && (*options)->market) {
    done = label(spank, kLabelMarket, std::string(name_of(*(*options)->market)));
  }
  return done;
}

}  // namespace acb::spank::allocator

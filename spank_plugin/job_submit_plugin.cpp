// SPDX-License-Identifier: Apache-2.0
// job_submit_autocloud.so, loaded by slurmctld: turns the label of a burst into node counts and a
// constraint. Called with slurmctld's locks held: no network, no child processes; one stat(2) for a
// job that is not ours.
#include "spank_plugin/boundary.h"
#include "spank_plugin/job_view.h"
#include "spank_plugin/slurm_text.h"
#include "spank_plugin/stored_job.h"

#include <unistd.h>

#include <algorithm>

namespace acb::spank {

namespace {

SiteFile& site_file() {
  static SiteFile file(ACB_CONFIG_FILE);
  return file;
}

Site current_site() {
  bool changed = false;
  Site site = site_file().current(&changed);
  if (changed && !site.error.empty()) {
    slurm_error("autocloud: settings: %s: bursts are refused until it can be read",
                site.error.c_str());
  }
  return site;
}

int code_of(RefusalKind kind) {
  switch (kind) {
    case RefusalKind::bad_request:
      return ESLURM_NOT_SUPPORTED;
    case RefusalKind::forbidden:
      return ESLURM_ACCESS_DENIED;
    case RefusalKind::no_config:
      return ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE;
  }
  return ESLURM_NOT_SUPPORTED;
}

/// One line of slurmctld's log, whatever the user's values are.
std::string one_line(std::string text) {
  constexpr std::size_t kLongest = 1000;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  if (text.size() > kLongest) {
    text.resize(kLongest);
  }
  return text;
}

int tell(const Refusal& refusal, char** message) {
  const std::string line = one_line(refusal.message);
  slurm_info("%s", line.c_str());
  if (message != nullptr) {
    assign(*message, line);
  }
  return code_of(refusal.kind);
}

int submit(job_desc_msg_t& job, char** message) {
  const Decision decision = decide_submit(request_of(job), current_site());
  if (const auto* refusal = std::get_if<Refusal>(&decision)) {
    return tell(*refusal, message);
  }
  if (const auto* rewrite = std::get_if<Rewrite>(&decision)) {
    apply(*rewrite, job);
  }
  return SLURM_SUCCESS;
}

bool is_burst(const job_desc_msg_t& job) {
  return &slurm_conf != nullptr && slurm_conf.state_save_location != nullptr &&
         is_stored_burst(slurm_conf.state_save_location, job_id_of(job));
}

int modify(const job_desc_msg_t& job, std::uint32_t user, char** message) {
  JobChange change = change_of(job);
  change.privileged = user == 0 || user == geteuid();  // slurmctld runs as SlurmUser
  if (const auto refusal = decide_move(change, current_site())) {
    return tell(*refusal, message);
  }
  if (needs_ownership(change) && is_burst(job)) {
    return tell(refuse_change_of_burst(change), message);
  }
  return SLURM_SUCCESS;
}

}  // namespace

}  // namespace acb::spank

extern "C" {

// Declared first: a const at namespace scope is invisible outside its file otherwise.
extern const char plugin_name[];
extern const char plugin_type[];
extern const std::uint32_t plugin_version;
const char plugin_name[] = "autocloud: bursts onto rented nodes";
const char plugin_type[] = "job_submit/autocloud";
const std::uint32_t plugin_version = SLURM_VERSION_NUMBER;

int init();
int fini();
int job_submit(job_desc_msg_t* job, std::uint32_t user, char** message);
int job_modify(job_desc_msg_t* job, void* record, std::uint32_t user ACB_JOB_MODIFY_MESSAGE);

int init() {
  return acb::spank::guarded(SLURM_ERROR, [] {
    static_cast<void>(acb::spank::current_site());  // says now what is wrong with the settings
    return SLURM_SUCCESS;
  });
}

int fini() {
  return SLURM_SUCCESS;
}

int job_submit(job_desc_msg_t* job, std::uint32_t /*user*/, char** message) {
  return acb::spank::guarded(SLURM_ERROR, [&] { return acb::spank::submit(*job, message); });
}

int job_modify(job_desc_msg_t* job, void* /*record*/, std::uint32_t user ACB_JOB_MODIFY_MESSAGE) {
  return acb::spank::guarded(
      SLURM_ERROR, [&] { return acb::spank::modify(*job, user, ACB_JOB_MODIFY_MESSAGE_VALUE); });
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/report/run_lock.h"

#include "base/json.h"
#include "base/text.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace acb::train {

namespace {

constexpr std::string_view kLocal = "local-";
constexpr std::size_t kLongestHolder = 4096;

/// The job in a run's id; empty outside of Slurm.
std::string_view job_of(std::string_view run) {
  return run.starts_with(kLocal) ? std::string_view() : run.substr(0, run.find('.'));
}

std::string_view start_of(std::string_view run) {
  return run.substr(0, run.find('-'));
}

std::string description_of_holder(const Json& holder) {
  const auto run = json_or<std::string>(holder, "run", "");
  const std::string_view job = job_of(run);
  return run.empty() ? std::string()
                     : " (" + (job.empty() ? "" : "job " + std::string(job) + ", ") + "process " +
                           std::to_string(json_or<std::int64_t>(holder, "process", 0)) + " on " +
                           json_or<std::string>(holder, "host", "") + ")";
}

// Over what an earlier run has left, so that a full disk has room for it.
Status write_holder(int fd, const std::filesystem::path& path, const std::string& run) {
  std::array<char, 256> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  const std::string text =
      dump_json({{"run", run}, {"host", host.data()}, {"process", ::getpid()}}) + "\n";
  const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
  if (!std::cmp_equal(written, text.size()) || ::ftruncate(fd, written) != 0) {
    return fail_errno("run: " + path.string());
  }
  return {};
}

}  // namespace

std::string new_run_id() {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr) {
    return std::string(kLocal) + random_hex(4);
  }
  const char* restart = std::getenv("SLURM_RESTART_COUNT");
  return std::string(job) + "." + (restart == nullptr ? "0" : restart) + "-" + random_hex(4);
}

bool may_pass(std::string_view holder, std::string_view run) {
  const std::string_view job = job_of(run);
  return holder == run ||
         (!job.empty() && job_of(holder) == job && start_of(holder) != start_of(run));
}

Result<UniqueFd> lock_run_folder(const std::filesystem::path& folder, const std::string& run) {
  ACB_TRY(make_folders(folder));
  const std::filesystem::path path = folder / "lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) {
    return fail_errno("run: " + path.string());
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
    ACB_TRY(write_holder(fd.get(), path, run));
  } else if (errno == EWOULDBLOCK) {
    const auto text = read_file(path, kLongestHolder);
    const auto holder = text ? parse_json(path.string(), *text) : Result<Json>(Json());
    if (!holder || !may_pass(json_or<std::string>(*holder, "run", ""), run)) {
      return fail(ErrorCode::invalid,
                  folder.string() + ": another run uses this folder" +
                      (holder ? description_of_holder(*holder) : "") +
                      ": wait for its end, or name another folder");
    }
  }
  return fd;
}

}  // namespace acb::train

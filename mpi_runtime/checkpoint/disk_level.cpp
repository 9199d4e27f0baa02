// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/disk_level.h"

#include "base/files.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>

namespace acb::train {

namespace fs = std::filesystem;

namespace {

// Without a thread to be had the task runs in whoever waits for it: slower, not lost.
template <typename Task>
auto launch(Task task) {
  try {
    return std::async(std::launch::async, task);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, task);
  }
}

template <typename Future>
bool is_ready(const Future& future) {
  return !future.valid() || future.wait_for(std::chrono::seconds(0)) != std::future_status::timeout;
}

// Removes what is older than the newest `keep` sets known to be sound. Sets that nobody has
// verified do not count: a damaged one must not push out a good one.
void prune(const fs::path& folder, std::vector<DiskLevel::TrustedSet> sound, int keep) {
  if (sound.size() < static_cast<std::size_t>(keep)) {
    return;
  }
  sound.erase(sound.begin(), sound.end() - keep);
  const auto oldest = std::min_element(
      sound.begin(), sound.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  for (const SetFolder& set : list_sets(folder)) {
    const SetIdentity& id = set.manifest.identity;
    const bool kept = std::any_of(sound.begin(), sound.end(), [&](const auto& trusted) {
      return trusted.set == id.set && trusted.step == id.step;
    });
    if (kept || id.step > oldest->step) {
      continue;
    }
    if (const auto removed = remove_set(set.path); !removed) {
      spdlog::warn("{}", removed.error().message);
    }
  }
}

// For whoever has to make room.
std::string room(const fs::path& folder, std::size_t needed) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  return error ? std::string()
               : fmt::format(": {} bytes are needed in {}, {} are free",
                             needed,
                             folder.string(),
                             space.available);
}

// Puts the finished folder `work` where `set` is. On an error `set` is as it was.
Status replace_folder(const fs::path& work, const fs::path& set) {
  std::error_code error;
  const fs::path old = work.string() + ".old";
  const bool replaces = fs::exists(set, error);
  if (replaces) {
    fs::rename(set, old, error);
  }
  if (!error) {
    fs::rename(work, set, error);
  }
  if (error) {
    if (std::error_code ignored; replaces && !fs::exists(set, ignored)) {
      fs::rename(old, set, ignored);
    }
    return fail(ErrorCode::unavailable,
                "checkpoint: renaming to " + set.string() + ": " + error.message());
  }
  ACB_TRY(sync_folder(set.parent_path()));
  // The new set stands, also where somebody still reads the old one and keeps it from going.
  if (const auto removed = replaces ? remove_set(old) : Status(); !removed) {
    spdlog::warn("{}: the set before is left there", removed.error().message);
  }
  return {};
}

}  // namespace

void sweep_unfinished(const fs::path& set) {
  const std::string prefix = set.filename().string() + ".writing-";
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator entry(set.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) {
      leftovers.push_back(entry->path());
    }
  }
  for (const fs::path& path : leftovers) {
    if (path.extension() == ".old" && !fs::exists(set, error)) {
      fs::rename(path, set, error);
    } else {
      fs::remove_all(path, error);
    }
    if (error) {
      spdlog::warn("checkpoint: {}: left by a killed writer: {}", path.string(), error.message());
    }
  }
}

DiskLevel::DiskLevel(
    Communicator& comm, std::string name, fs::path folder, std::vector<int> commits, int keep)
    : comm_(comm),
      name_(std::move(name)),
      folder_(std::move(folder)),
      commits_(std::move(commits)),
      keep_(keep) {}

void DiskLevel::start(const ShardPlan& plan, const SetIdentity& identity) {
  const auto is_this = [&](const TrustedSet& known) {
    return known.set == identity.set && known.step == identity.step;
  };
  last_start_ = Clock::now();
  last_result_ = {};
  if (std::any_of(trusted_.begin(), trusted_.end(), is_this)) {
    return;
  }
  identity_ = identity;
  sections_ = plan.sections;
  work_ = keep_ > 0 ? folder_ / folder_name(identity)
                    : fs::path(folder_.string() + ".writing-" + identity.set);
  snapshot_.resize(plan.bytes);
  write_shard(plan, snapshot_);
  stall_seconds_ = seconds_since(last_start_);
  phase_ = Phase::writing;
  write_ = launch([work = work_, index = comm_.rank(), bytes = std::span(snapshot_)] {
    return write_shard_file(work, index, bytes);
  });
}

bool DiskLevel::ready() const {
  return phase_ == Phase::writing ? is_ready(write_) : is_ready(commit_);
}

void DiskLevel::wait() const {
  if (phase_ == Phase::writing) {
    write_.wait();
  } else if (commit_.valid()) {
    commit_.wait();
  }
}

Status DiskLevel::advance(const std::function<void(const Saved&)>& told) {
  return phase_ == Phase::writing ? finish_writing() : finish_commit(told);
}

Status DiskLevel::finish_writing() {
  const Result<StoredShard> mine = write_.get();
  wrote_ = mine.has_value();
  struct Report {
    bool wrote = false;
    StoredShard shard;
  };
  ACB_TRY_ASSIGN(const std::vector<Report> all,
                 gather_values(comm_, Report{wrote_, mine.value_or(StoredShard{})}));
  if (!std::all_of(all.begin(), all.end(), [](const Report& report) { return report.wrote; })) {
    abandon(mine.map([](const auto&) {}));
    return {};
  }
  phase_ = Phase::committing;
  if (commits_.empty()) {
    return {};
  }
  Manifest manifest{identity_, name_, sections_, {}};
  for (const int rank : commits_) {
    manifest.shards.push_back(all[static_cast<std::size_t>(rank)].shard);
  }
  std::vector<TrustedSet> sound = trusted_;
  sound.push_back({identity_.set, identity_.step});
  commit_ = launch([manifest, sound, work = work_, folder = folder_, keep = keep_]() -> Status {
    ACB_TRY(write_manifest(work, manifest));
    if (keep == 0) {
      return replace_folder(work, folder);
    }
    prune(folder, sound, keep);
    return {};
  });
  return {};
}

Status DiskLevel::finish_commit(const std::function<void(const Saved&)>& told) {
  const Status mine = commit_.valid() ? commit_.get() : Status();
  ACB_TRY_ASSIGN(const std::int64_t failed, largest(comm_, mine ? 0 : 1));
  if (failed != 0) {
    if (!commits_.empty()) {
      // Where another node's manifest failed, this one's stands for a set that is never whole.
      static_cast<void>(remove_set(work_));
    }
    abandon(mine);
    return {};
  }
  phase_ = Phase::idle;
  trust({identity_.set, identity_.step});
  write_seconds_ = seconds_since(last_start_);
  if (told && comm_.rank() == 0) {
    told({name_, identity_.step, write_seconds_});
  }
  return {};
}

void DiskLevel::abandon(const Status& mine) {
  phase_ = Phase::idle;
  if (wrote_) {
    remove_shard_file(work_, comm_.rank());
  }
  if (!mine) {
    const std::string cause =
        mine.error().message + (mine.error().code == ErrorCode::exhausted
                                    ? room(work_.parent_path(), snapshot_.size())
                                    : "");
    spdlog::warn("{}: step {} is not saved to level {}; the older checkpoint stays",
                 cause,
                 identity_.step,
                 name_);
    last_result_ = fail(mine.error().code, cause);
  } else {
    last_result_ = fail(
        ErrorCode::exhausted,
        fmt::format(
            "checkpoint: step {}: another rank could not save to level {}", identity_.step, name_));
  }
}

}  // namespace acb::train

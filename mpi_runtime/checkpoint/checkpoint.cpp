// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/checkpoint.h"

#include "base/files.h"
#include "base/text.h"
#include "mpi_runtime/checkpoint/disk_level.h"
#include "mpi_runtime/checkpoint/interval.h"
#include "mpi_runtime/checkpoint/load.h"
#include "mpi_runtime/checkpoint/memory_level.h"
#include "mpi_runtime/checkpoint/shared_folder.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace acb::train {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::minutes kLeftoverAge{10};
constexpr const char* kIncidents = "checkpoint.incidents";

Status check_config(const CheckpointConfig& config) {
  if (config.node.empty() || config.run.empty() || config.run.find('/') != std::string::npos) {
    return fail(ErrorCode::invalid,
                "checkpoint: node '" + config.node + "', run '" + config.run +
                    "': both are needed, the run without '/'");
  }
  if (config.keep < 2 || config.memory_every < 1 || config.interval_s < 0) {
    return fail(ErrorCode::invalid,
                fmt::format("checkpoint: keep {} (at least 2), memory_every {} (at least 1), "
                            "interval_s {} (not negative)",
                            config.keep,
                            config.memory_every,
                            config.interval_s));
  }
  return {};
}

// What the ranks tell each other after a step.
struct Pulse {
  bool memory_failed = false;  ///< this rank's part of the save before
  bool not_finite = false;     ///< its state now
  bool flight_ready = false;   ///< its part of the disk save under way
  std::int8_t due = -1;        ///< rank 0: the disk level to save to now
};

}  // namespace

class Checkpointer::Impl {
 public:
  Impl(Communicator& comm, CheckpointConfig config) : comm_(comm), config_(std::move(config)) {}

  Status open();
  Status add(Section section);
  Result<std::optional<Loaded>> load(const std::vector<Offer>& offers);
  std::vector<Offer> offers() const;
  std::vector<Offer> offers_of(const fs::path& set) const;
  Status after_step(std::int64_t step);
  Status save_now(std::int64_t step, SaveReason why);
  Status save_to(const fs::path& set, std::int64_t step);
  Status drain();

  std::function<void(const Saved&)> told;
  std::string inexact_reason;  ///< empty: exact

 private:
  Status keep_usable_levels();
  Section incident_section();
  SetIdentity identity(std::int64_t step) const;
  Status pulse(std::int64_t step, bool last);
  Status save_to_memory(const ShardPlan& plan, std::int64_t step);
  void settle_memory(bool failed);
  int level_due() const;
  void fly(DiskLevel& level, std::int64_t step);

  Communicator& comm_;
  CheckpointConfig config_;
  std::string set_;
  bool leads_node_ = false;
  std::vector<Section> sections_;
  std::optional<MemoryLevel> memory_;
  std::optional<std::int64_t> unsettled_;  ///< memory save that the others have not confirmed
  bool memory_failed_ = false;
  bool other_sets_dropped_ = false;
  double memory_seconds_ = 0;
  std::vector<std::unique_ptr<DiskLevel>> disks_;
  DiskLevel* flying_ = nullptr;
  bool finite_ = true;
  IncidentHistory history_;
  std::string ended_ = "running";
  Clock::time_point started_ = Clock::now();
};

Status Checkpointer::Impl::open() {
  ACB_TRY(check_config(config_));
  ACB_TRY_ASSIGN(const std::vector<std::string> ids, gather_texts(comm_, random_hex(4)));
  set_ = fmt::format("{}-{}-{}", config_.run, config_.start, ids.front());
  ACB_TRY_ASSIGN(const std::vector<std::string> nodes, gather_texts(comm_, config_.node));
  const auto rank = static_cast<std::ptrdiff_t>(comm_.rank());
  leads_node_ =
      std::find(nodes.begin(), nodes.begin() + rank, config_.node) == nodes.begin() + rank;
  ACB_TRY(keep_usable_levels());
  if (!config_.shared.empty()) {
    ACB_TRY(check_shared_folder(comm_, "checkpoint.shared", config_.shared, config_.node));
  }
  if (!config_.memory.empty()) {
    memory_.emplace(comm_, config_.memory, nodes, set_);
  }
  std::vector<int> here;
  std::vector<int> everyone;
  for (int i = 0; i < comm_.size(); ++i) {
    everyone.push_back(i);
    if (nodes[static_cast<std::size_t>(i)] == config_.node) {
      here.push_back(i);
    }
  }
  const auto add_level = [&](const char* name, const fs::path& folder, std::vector<int> commits) {
    if (folder.empty()) {
      return;
    }
    if (!commits.empty()) {
      sweep_leftovers(folder, kLeftoverAge);
    }
    disks_.push_back(
        std::make_unique<DiskLevel>(comm_, name, folder, std::move(commits), config_.keep));
  };
  add_level("local", config_.local, leads_node_ ? here : std::vector<int>());
  add_level("shared", config_.shared, comm_.rank() == 0 ? everyone : std::vector<int>());
  sections_.push_back(incident_section());
  sections_.push_back({kSettingsSection,
                       {},
                       [this] { return config_.settings; },
                       [](const Json&) { return Status(); }});
  return {};
}

// A level must be usable on every rank: one that is not there on one of them could never be whole.
// Without the shared level nothing outlives the nodes, so that one is not given up.
Status Checkpointer::Impl::keep_usable_levels() {
  std::error_code error;
  const bool has_memory = !config_.memory.empty() && fs::is_directory(config_.memory, error);
  const bool has_local = !config_.local.empty() && make_folders(config_.local).has_value() &&
                         ::access(config_.local.c_str(), W_OK) == 0;
  struct Flags {
    bool of[2];
  };
  ACB_TRY_ASSIGN(const std::vector<Flags> all,
                 gather_values(comm_, Flags{{has_memory, has_local}}));
  fs::path* const folders[] = {&config_.memory, &config_.local};
  const char* const names[] = {"memory", "local"};
  for (int i = 0; i < 2; ++i) {
    const bool everywhere =
        std::all_of(all.begin(), all.end(), [i](const Flags& flags) { return flags.of[i]; });
    if (!everywhere && !folders[i]->empty() && comm_.rank() == 0) {
      spdlog::warn("checkpoint: level {}: {}: not usable on every rank: no saves there",
                   names[i],
                   folders[i]->string());
    }
    if (!everywhere) {
      folders[i]->clear();
    }
  }
  return {};
}

// Kept in the checkpoints themselves, so that it survives every start and requeue.
Section Checkpointer::Impl::incident_section() {
  const auto save = [this]() -> Json {
    return {{"up_s", history_.up_s + seconds_since(started_)},
            {"incidents", history_.incidents},
            {"saved_in_time", history_.saved_in_time},
            {"ended", ended_}};
  };
  const auto load = [this](const Json& json) -> Status {
    history_ = {json_or<double>(json, "up_s", 0),
                json_or<std::int64_t>(json, "incidents", 0),
                json_or<std::int64_t>(json, "saved_in_time", 0)};
    const auto ended = json_or<std::string>(json, "ended", "running");
    history_.incidents += ended == "leaving" ? 0 : 1;
    history_.saved_in_time += ended == "notice" ? 1 : 0;
    return {};
  };
  return {kIncidents, {}, save, load};
}

Status Checkpointer::Impl::add(Section section) {
  for (const Section& known : sections_) {
    if (known.name == section.name) {
      return fail(ErrorCode::exists, "checkpoint: section '" + section.name + "' is there already");
    }
  }
  sections_.push_back(std::move(section));
  return {};
}

SetIdentity Checkpointer::Impl::identity(std::int64_t step) const {
  return {set_, step, comm_.size(), config_.settings_hash, config_.dataset_hash, inexact_reason};
}

std::vector<Offer> Checkpointer::Impl::offers() const {
  std::vector<Offer> found;
  const auto append = [&](std::vector<Offer> more) {
    found.insert(found.end(), more.begin(), more.end());
  };
  if (memory_ && leads_node_) {
    append(memory_offers(config_.memory));
  }
  for (const auto& disk : disks_) {
    if (disk->commits_here()) {
      append(disk_offers(disk->folder(), disk->name()));
    }
  }
  return found;
}

std::vector<Offer> Checkpointer::Impl::offers_of(const fs::path& set) const {
  if (comm_.rank() != 0) {
    return {};
  }
  const auto manifest = read_manifest(set);
  if (!manifest && manifest.error().code == ErrorCode::not_found) {
    return {};
  }
  if (!manifest) {
    return {{.level = "folder", .fault = manifest.error().message}};
  }
  const SetIdentity& id = manifest->identity;
  return {{"folder", id.set, id.step, id.world, set, manifest->shards}};
}

Result<std::optional<Loaded>> Checkpointer::Impl::load(const std::vector<Offer>& offers) {
  Loader loader(comm_, config_, sections_);
  ACB_TRY_ASSIGN(const std::optional<Loaded> loaded, loader.load(offers));
  if (loaded) {
    inexact_reason = loaded->inexact_reason;
  }
  for (const auto& disk : disks_) {
    if (loaded && loaded->level == disk->name()) {
      disk->trust({loaded->source, loaded->step});
    }
  }
  return loaded;
}

Status Checkpointer::Impl::save_to_memory(const ShardPlan& plan, std::int64_t step) {
  const auto start = Clock::now();
  ACB_TRY_ASSIGN(const Status saved, memory_->save(plan, step));
  if (!saved) {
    spdlog::warn("{}: step {} is not saved to memory", saved.error().message, step);
  }
  memory_failed_ = !saved;
  unsettled_ = step;
  memory_seconds_ = seconds_since(start);
  return {};
}

void Checkpointer::Impl::settle_memory(bool failed) {
  if (failed) {
    if (comm_.rank() == 0) {
      spdlog::warn("checkpoint: level memory: given up, a rank could not save to it");
    }
    memory_.reset();
  } else {
    if (!other_sets_dropped_ && leads_node_) {
      memory_->drop_other_sets();
    }
    other_sets_dropped_ = true;
    if (told && comm_.rank() == 0) {
      told({"memory", *unsettled_, memory_seconds_});
    }
  }
  unsettled_.reset();
}

// Of the levels that are due, the one that has waited longest: one that is due again as soon as it
// is done must not keep the others from their turn.
int Checkpointer::Impl::level_due() const {
  int due = -1;
  IncidentHistory history = history_;
  history.up_s += seconds_since(started_);
  for (std::size_t i = 0; i < disks_.size(); ++i) {
    const double interval =
        config_.interval_s > 0
            ? config_.interval_s
            : save_interval(disks_[i]->stall_seconds(), disks_[i]->write_seconds(), history);
    if (seconds_since(disks_[i]->last_start()) >= interval &&
        (due < 0 ||
         disks_[i]->last_start() < disks_[static_cast<std::size_t>(due)]->last_start())) {
      due = static_cast<int>(i);
    }
  }
  return due;
}

// One small gather decides everything that the ranks must do alike: whether the state is fit to be
// saved, whether the last memory save is whole, whether the disk save has landed, whether the next
// is due.
Status Checkpointer::Impl::pulse(std::int64_t step, bool last) {
  const ShardPlan plan = plan_shard(identity(step), comm_.rank(), sections_);
  const std::string bad = find_non_finite(plan);
  if (!bad.empty()) {
    spdlog::warn("checkpoint: step {}: {} is not finite: nothing is saved", step, bad);
  }
  const Pulse mine{memory_failed_,
                   !bad.empty(),
                   flying_ != nullptr && flying_->ready(),
                   static_cast<std::int8_t>(comm_.rank() == 0 && !last ? level_due() : -1)};
  ACB_TRY_ASSIGN(const std::vector<Pulse> all, gather_values(comm_, mine));
  const auto any = [&](bool Pulse::*flag) {
    return std::any_of(all.begin(), all.end(), [=](const Pulse& pulse) { return pulse.*flag; });
  };
  finite_ = !any(&Pulse::not_finite);
  if (unsettled_) {
    settle_memory(any(&Pulse::memory_failed));
  }
  if (memory_ && finite_ && (last || step % config_.memory_every == 0)) {
    ACB_TRY(save_to_memory(plan, step));
  }
  if (flying_ != nullptr &&
      std::all_of(all.begin(), all.end(), [](const Pulse& pulse) { return pulse.flight_ready; })) {
    ACB_TRY(flying_->advance(told));
    flying_ = flying_->idle() ? nullptr : flying_;
  }
  if (flying_ == nullptr && finite_ && all.front().due >= 0) {
    fly(*disks_[static_cast<std::size_t>(all.front().due)], step);
  }
  return {};
}

Status Checkpointer::Impl::after_step(std::int64_t step) {
  ended_ = "running";
  return pulse(step, false);
}

void Checkpointer::Impl::fly(DiskLevel& level, std::int64_t step) {
  level.start(plan_shard(identity(step), comm_.rank(), sections_), identity(step));
  flying_ = level.idle() ? nullptr : &level;
}

Status Checkpointer::Impl::drain() {
  while (flying_ != nullptr) {
    flying_->wait();
    ACB_TRY(flying_->advance(told));
    flying_ = flying_->idle() ? nullptr : flying_;
  }
  return {};
}

Status Checkpointer::Impl::save_now(std::int64_t step, SaveReason why) {
  ended_ = why == SaveReason::notice ? "notice" : "leaving";
  ACB_TRY(pulse(step, true));
  ACB_TRY(drain());
  if (!finite_) {
    return fail(ErrorCode::corrupt,
                "checkpoint: step " + std::to_string(step) + ": its state is not finite");
  }
  if (!disks_.empty()) {
    fly(*disks_.back(), step);
    ACB_TRY(drain());
    return disks_.back()->last_result();
  }
  ACB_TRY_ASSIGN(const std::int64_t failed, largest(comm_, memory_ && !memory_failed_ ? 0 : 1));
  if (failed != 0) {
    return fail(ErrorCode::exhausted,
                "checkpoint: step " + std::to_string(step) +
                    ": there is no level that it could be saved to");
  }
  settle_memory(false);
  return {};
}

Status Checkpointer::Impl::save_to(const fs::path& set, std::int64_t step) {
  ACB_TRY(drain());
  const ShardPlan plan = plan_shard(identity(step), comm_.rank(), sections_);
  ACB_TRY_ASSIGN(const std::int64_t bad, largest(comm_, find_non_finite(plan).empty() ? 0 : 1));
  if (bad != 0) {
    return fail(ErrorCode::corrupt,
                "checkpoint: step " + std::to_string(step) + ": its state is not finite");
  }
  std::vector<int> commits;
  for (int i = 0; comm_.rank() == 0 && i < comm_.size(); ++i) {
    commits.push_back(i);
  }
  if (comm_.rank() == 0) {
    sweep_unfinished(set);
  }
  ACB_TRY(barrier(comm_));
  DiskLevel folder(comm_, "folder", set, std::move(commits), 0);
  fly(folder, step);
  const Status drained = drain();
  flying_ = nullptr;
  ACB_TRY(drained);
  return folder.last_result();
}

Checkpointer::Checkpointer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Checkpointer::~Checkpointer() = default;

Result<std::unique_ptr<Checkpointer>> Checkpointer::open(Communicator& comm,
                                                         CheckpointConfig config) {
  auto impl = std::make_unique<Impl>(comm, std::move(config));
  ACB_TRY(impl->open());
  return std::unique_ptr<Checkpointer>(new Checkpointer(std::move(impl)));
}

Status Checkpointer::add(Section section) {
  return impl_->add(std::move(section));
}
void Checkpointer::on_saved(std::function<void(const Saved&)> told) {
  impl_->told = std::move(told);
}
void Checkpointer::mark_inexact(std::string_view reason) {
  if (impl_->inexact_reason.empty()) {
    impl_->inexact_reason = reason;
  }
}
const std::string& Checkpointer::inexact_reason() const {
  return impl_->inexact_reason;
}
Result<std::optional<Loaded>> Checkpointer::load_newest(const fs::path& final_set) {
  std::vector<Offer> offers = impl_->offers();
  for (Offer& offer : final_set.empty() ? std::vector<Offer>() : impl_->offers_of(final_set)) {
    offers.push_back(std::move(offer));
  }
  return impl_->load(offers);
}
Result<Loaded> Checkpointer::load_from(const fs::path& set) {
  ACB_TRY_ASSIGN(const std::optional<Loaded> loaded, impl_->load(impl_->offers_of(set)));
  if (!loaded) {
    return fail(ErrorCode::not_found, "checkpoint: " + set.string() + ": no sound set");
  }
  return *loaded;
}
Status Checkpointer::after_step(std::int64_t step) {
  return impl_->after_step(step);
}
Status Checkpointer::save_now(std::int64_t step, SaveReason why) {
  return impl_->save_now(step, why);
}
Status Checkpointer::save_to(const fs::path& set, std::int64_t step) {
  return impl_->save_to(set, step);
}
Status Checkpointer::finish() {
  return impl_->drain();
}

}  // namespace acb::train

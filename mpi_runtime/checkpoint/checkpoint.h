// SPDX-License-Identifier: Apache-2.0
// Checkpoints as transactions. A save is a set of shards and one manifest that is renamed into
// place once all shards are durable; a set without a valid manifest does not exist. Loading takes
// the newest step that all ranks together can read whole, from whichever level survived.
//
//   memory   each node's memory, and a copy in a partner node's: survives the loss of all ranks, or
//            of one node without notice. Saved within the step.
//   local    each node's disk: survives the loss of all ranks.
//   shared   storage that every node sees: survives all nodes. Saved beside training, like local:
//            the state is copied, a thread writes it, a later step commits it.
//
// A full disk or a failed write never ends training: one warning, the older checkpoint stays, the
// next save tries again. State with a NaN or an infinity in it is never committed.
#pragma once

#include "base/result.h"
#include "mpi_runtime/checkpoint/section.h"
#include "mpi_runtime/comm/communicator.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace acb::train {

struct CheckpointConfig {
  std::filesystem::path memory;  ///< this node's memory folder (agent/memory_folder.h); empty: none
  std::filesystem::path local;   ///< empty: no such level
  std::filesystem::path shared;  ///< empty: no such level
  int memory_every = 1;          ///< steps between memory saves
  double interval_s = 0;         ///< between saves to a disk level; 0: see interval.h
  int keep = 2;                  ///< committed sets kept in a disk level, at least 2

  std::string node;  ///< failure domain of this rank: equal for the ranks of one node
  std::string run;   ///< the run's id, in names of sets: job id, or anything without '/'
  int start = 1;     ///< 1 for the first start of the run, then 2, ...

  std::string settings_hash;  ///< of all settings that change numbers; another refuses the load
  Json settings = Json::object();  ///< these settings, name to text, to name what differs
  std::string dataset_hash;        ///< of the data; another refuses the load
};

/// A step that has become safe.
struct Saved {
  std::string_view level;  ///< "memory", "local", "shared" or "folder"
  std::int64_t step = 0;
  double seconds = 0;  ///< from the start of the save to its commit
};

struct Loaded {
  std::int64_t step = 0;
  std::string level;
  std::string source;  ///< the set's name, for the log
  std::string
      inexact_reason;  ///< why its weights are no function of settings and data; empty: exact
};

/// Why training stops after a save.
enum class SaveReason {
  notice,   ///< a node is about to be reclaimed
  leaving,  ///< time limit, SIGTERM, or another choice of ours
};

/// All calls are collective: every rank makes the same ones in the same order, from its training
/// thread. Nothing communicates in the background.
class Checkpointer {
 public:
  /// Makes missing folders of the disk levels and removes aged leftovers of killed writers there.
  /// `comm` must outlive it. Errors: `invalid` for a bad config; check_shared_folder's for
  /// `shared`. Another level that cannot be used is dropped with a warning, on all ranks.
  [[nodiscard]] static Result<std::unique_ptr<Checkpointer>> open(Communicator& comm,
                                                                  CheckpointConfig config);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Registers a section; before load_newest or the first save. What its parts point to must stay
  /// where it is. `exists`: the name is taken. (Not collective.)
  [[nodiscard]] Status add(Section section);

  /// Told on rank 0 of each step that has become safe. (Not collective.)
  void on_saved(std::function<void(const Saved&)> told);

  /// Loads the newest sound step into the sections; nullopt where nothing was saved (a fresh
  /// start). Nothing is written to live state before every shard has been verified; a bad shard
  /// sends all ranks to the step before, with a warning. Errors, without touching live state:
  /// `invalid` for other settings, other data, or a section or tensor that only one side knows
  /// (named); `corrupt` where nothing of what was saved can be read. `final_set`: a set of save_to
  /// that counts too.
  [[nodiscard]] Result<std::optional<Loaded>> load_newest(
      const std::filesystem::path& final_set = {});
  /// Loads one set on disk, as written by save_to, in the same way.
  [[nodiscard]] Result<Loaded> load_from(const std::filesystem::path& set);

  /// From here on, weights depend on more than settings and data. The first reason counts, and
  /// stays with all that is saved from now on, over every load. (Neither is collective.)
  void mark_inexact(std::string_view reason);
  [[nodiscard]] const std::string& inexact_reason() const;

  /// After each complete step, while no one changes the state: saves to memory, commits what the
  /// writers have finished, and starts a disk save that is due. Errors only where the communicator
  /// fails.
  [[nodiscard]] Status after_step(std::int64_t step);

  /// Saves now to the highest level there is (shared, else local, else memory) and returns once it
  /// is committed: before leaving on an order. `why` feeds the interval's
  /// statistics. The error says why the step is not safe; training may go on.
  [[nodiscard]] Status save_now(std::int64_t step, SaveReason why);

  /// Saves into `set`, a folder that every rank sees, replacing what is there; returns once
  /// committed. For the final checkpoint.
  [[nodiscard]] Status save_to(const std::filesystem::path& set, std::int64_t step);

  /// Waits for the writers and commits what they finished: before the end.
  [[nodiscard]] Status finish();

 private:
  class Impl;
  explicit Checkpointer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace acb::train

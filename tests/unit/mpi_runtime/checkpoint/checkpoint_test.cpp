// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/checkpoint.h"

#include "base/files.h"
#include "mpi_runtime/checkpoint/set_folder.h"
#include "tests/unit/mpi_runtime/checkpoint/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mount.h>

#include <atomic>
#include <fstream>
#include <limits>
#include <mutex>

namespace acb::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CheckpointConfig shared_config(const fs::path& folder, int start = 1) {
  CheckpointConfig config = test_config("node-0", start);
  config.shared = folder;
  return config;
}

/// Saves these steps to shared storage, from `ranks` ranks.
void save_steps(const fs::path& folder, int ranks, const std::vector<std::int64_t>& steps) {
  run_ranks(ranks, [&](Communicator& comm) {
    Trainer trainer(comm, shared_config(folder));
    for (const std::int64_t step : steps) {
      trainer.state.set(step);
      const auto saved = trainer.checkpointer->save_now(step, SaveReason::leaving);
      ASSERT_TRUE(saved) << saved.error().message;
    }
  });
}

/// What each of `ranks` ranks loads, provided that all load the same and get that step's state.
std::int64_t loaded_step(const fs::path& folder, int ranks) {
  std::mutex mutex;
  std::set<std::int64_t> steps;
  run_ranks(ranks, [&](Communicator& comm) {
    Trainer trainer(comm, shared_config(folder, 2));
    const std::int64_t step = trainer.load();
    EXPECT_TRUE(step < 0 || trainer.state.is(step)) << trainer.error;
    const std::lock_guard lock(mutex);
    steps.insert(step);
  });
  EXPECT_EQ(steps.size(), 1U);
  return *steps.begin();
}

std::vector<std::int64_t> committed_steps(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  for (const SetFolder& set : list_sets(folder)) {
    steps.push_back(set.manifest.identity.step);
  }
  return steps;
}

class WorldSizes : public ::testing::TestWithParam<int> {};

TEST_P(WorldSizes, AnyNumberOfRanksLoadsWhatAnyOtherSaved) {
  const TemporaryFolder folder;
  save_steps(folder.path(), GetParam(), {7});
  for (int ranks = 1; ranks <= 5; ++ranks) {
    EXPECT_EQ(loaded_step(folder.path(), ranks), 7) << ranks;
  }
}
INSTANTIATE_TEST_SUITE_P(Saved, WorldSizes, ::testing::Range(1, 6));

TEST(Checkpoint, AFreshFolderLoadsNothing) {
  const TemporaryFolder folder;
  EXPECT_EQ(loaded_step(folder.path(), 2), -1);
}

TEST(Checkpoint, RefusesToStartOverWhereNothingOfWhatWasSavedCanBeRead) {
  for (const char* file : {"shard-00001", "manifest.json"}) {
    const TemporaryFolder folder;
    save_steps(folder.path(), 2, {1, 2});
    for (const SetFolder& set : list_sets(folder.path())) {
      std::fstream(set.path / file, std::ios::in | std::ios::out | std::ios::binary)
          .seekp(40)
          .put('\xff');
    }
    run_ranks(2, [&](Communicator& comm) {
      Trainer trainer(comm, shared_config(folder.path(), 2));
      EXPECT_EQ(trainer.load(), -2) << file;
      EXPECT_THAT(trainer.error, HasSubstr("step-0000000001-run"));
      EXPECT_THAT(trainer.error, HasSubstr("step-0000000002-run"));
      EXPECT_THAT(trainer.error, HasSubstr("to start anew"));
    });
  }
}

TEST(Checkpoint, RefusesToStartOverWhereTheFolderCannotBeListed) {
  const TemporaryFolder folder;
  run_ranks(2, [&](Communicator& comm) {
    Trainer trainer(comm, shared_config(folder.path() / "level"));
    ASSERT_TRUE(barrier(comm));
    if (comm.rank() == 0) {
      fs::remove(folder.path() / "level");
      std::ofstream(folder.path() / "level") << "x";
    }
    EXPECT_EQ(trainer.load(), -2);
    EXPECT_THAT(trainer.error, HasSubstr("level: Not a directory"));
  });
}

TEST(Checkpoint, RefusesASharedFolderThatNodesDoNotShareOrCannotWrite) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  for (const bool writable : {true, false}) {
    run_ranks(3, [&](Communicator& comm) {
      CheckpointConfig config = test_config("node-" + std::to_string(comm.rank()));
      config.shared = folder.path() / (comm.rank() == 1 ? "own" : "all");
      if (!writable) {
        config.shared = folder.path() / "file" / "level";
      }
      const auto opened = Checkpointer::open(comm, config);
      ASSERT_FALSE(opened);
      EXPECT_EQ(opened.error().code, ErrorCode::invalid);
      EXPECT_THAT(opened.error().message,
                  HasSubstr(writable ? "own on node-1: it is not the folder that rank 0 sees"
                                     : "file/level on node-0: writing"));
    });
  }
  EXPECT_TRUE(fs::is_empty(folder.path() / "all")) << "leftovers";
}

TEST(Checkpoint, CommitsOnlyShardsThatAreThere) {
  const TemporaryFolder folder;
  const auto link = [&](int rank) { return folder.path() / ("link-" + std::to_string(rank)); };
  fs::create_directory(folder.path() / "other");
  for (const int rank : {0, 1}) {
    fs::create_symlink(folder.make("all"), link(rank));
  }
  run_ranks(2, [&](Communicator& comm) {
    Trainer trainer(comm, shared_config(link(comm.rank())));
    trainer.state.set(1);
    ASSERT_TRUE(barrier(comm));
    if (comm.rank() == 1) {
      fs::remove(link(1));
      fs::create_symlink(folder.path() / "other", link(1));
    }
    EXPECT_FALSE(trainer.checkpointer->save_now(1, SaveReason::leaving));
    EXPECT_FALSE(trainer.checkpointer->save_to(link(comm.rank()) / "final", 1));
  });
  EXPECT_THAT(committed_steps(folder.path() / "all"), ElementsAre());
  EXPECT_FALSE(fs::exists(folder.path() / "all" / "final"));
}

TEST(Checkpoint, KeepsTheNewestTwo) {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {1, 2, 3, 4});
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(4, 3));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
}

// Damages of one file each; all must lead to the step before.
class Damage : public ::testing::TestWithParam<std::string> {};

TEST_P(Damage, SendsEveryRankToTheStepBefore) {
  const TemporaryFolder folder;
  save_steps(folder.path(), 3, {1, 2});
  const fs::path file = list_sets(folder.path()).front().path / GetParam();
  const auto size = static_cast<std::int64_t>(fs::file_size(file));
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{30}, size / 2, size - 3}) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const char before = static_cast<char>(stream.get());
    stream.seekp(at);
    stream.put(static_cast<char>(before ^ 16));
    stream.close();
    EXPECT_EQ(loaded_step(folder.path(), 2), 1) << "a bit at " << at;
    stream.open(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(at);
    stream.put(before);
    stream.close();
  }
  EXPECT_EQ(loaded_step(folder.path(), 2), 2) << "healed";
  fs::resize_file(file, static_cast<std::uintmax_t>(size - 1));
  EXPECT_EQ(loaded_step(folder.path(), 2), 1) << "one byte short";
  fs::resize_file(file, 0);
  EXPECT_EQ(loaded_step(folder.path(), 2), 1) << "empty";
  fs::remove(file);
  EXPECT_EQ(loaded_step(folder.path(), 2), 1) << "gone";
}
INSTANTIATE_TEST_SUITE_P(
    File, Damage, ::testing::Values("shard-00000", "shard-00001", "shard-00002", "manifest.json"));

TEST(Checkpoint, RefusesOtherSettingsAndOtherData) {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {5});
  run_ranks(2, [&](Communicator& comm) {
    CheckpointConfig config = shared_config(folder.path(), 2);
    config.settings_hash = "others";
    Trainer trainer(comm, config);
    trainer.state.set(99);
    EXPECT_EQ(trainer.load(), -2);
    EXPECT_THAT(trainer.error, HasSubstr("its settings hash is settings, this run's is others"));
    EXPECT_TRUE(trainer.state.is(99)) << "live state was touched";
  });
  run_ranks(2, [&](Communicator& comm) {
    CheckpointConfig config = shared_config(folder.path(), 2);
    config.dataset_hash = "other";
    Trainer trainer(comm, config);
    EXPECT_EQ(trainer.load(), -2);
    EXPECT_THAT(trainer.error, HasSubstr("its dataset hash is dataset"));
  });
}

TEST(Checkpoint, RefusesSectionsThatOnlyOneSideKnows) {
  const TemporaryFolder folder;
  save_steps(folder.path(), 1, {5});
  run_ranks(2, [&](Communicator& comm) {
    Trainer trainer(comm, shared_config(folder.path(), 2));
    ASSERT_TRUE(trainer.checkpointer->add({"sampler"}));
    trainer.state.set(99);
    EXPECT_EQ(trainer.load(), -2);
    EXPECT_THAT(trainer.error, HasSubstr("section 'sampler' is missing"));
    EXPECT_TRUE(trainer.state.is(99));
  });
  run_ranks(2, [&](Communicator& comm) {
    TrainingState state(comm);
    auto opened = Checkpointer::open(comm, shared_config(folder.path(), 2));
    ASSERT_TRUE(opened);
    for (Section& section : state.sections()) {
      if (section.name != "momentum") {
        ASSERT_TRUE((*opened)->add(std::move(section)));
      }
    }
    const auto loaded = (*opened)->load_newest();
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message, HasSubstr("section 'momentum' in it is unknown"));
  });
}

TEST(Checkpoint, RefusesATensorOfAnotherShape) {
  const TemporaryFolder folder;
  save_steps(folder.path(), 1, {5});
  run_ranks(1, [&](Communicator& comm) {
    TrainingState state(comm);
    auto opened = Checkpointer::open(comm, shared_config(folder.path(), 2));
    for (Section& section : state.sections()) {
      if (section.name == "weights") {
        section.parts[1].shape = {6};
      }
      ASSERT_TRUE((*opened)->add(std::move(section)));
    }
    const auto loaded = (*opened)->load_newest();
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message, HasSubstr("weights/bias has another shape"));
  });
}

TEST(Checkpoint, NeverCommitsStateThatIsNotFinite) {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {1});
  run_ranks(2, [&](Communicator& comm) {
    Trainer trainer(comm, shared_config(folder.path(), 2));
    trainer.state.set(2);
    if (comm.rank() == 1) {
      trainer.state.weights()[3] = std::numeric_limits<float>::quiet_NaN();
    }
    EXPECT_FALSE(trainer.checkpointer->save_now(2, SaveReason::leaving));
    EXPECT_FALSE(trainer.checkpointer->save_to(folder.path() / "final", 2));
    EXPECT_TRUE(trainer.checkpointer->after_step(2));
  });
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(1));
  EXPECT_FALSE(fs::exists(folder.path() / "final"));
}

TEST(Checkpoint, SavesBesideTrainingWhatTheStateWasWhenItBegan) {
  const TemporaryFolder folder;
  std::atomic<std::int64_t> told = -1;
  run_ranks(3, [&](Communicator& comm) {
    CheckpointConfig config = shared_config(folder.path());
    config.interval_s = 1e-9;  // whenever none is under way
    Trainer trainer(comm, config);
    trainer.checkpointer->on_saved([&](const Saved& saved) { told = saved.step; });
    for (std::int64_t step = 1; step <= 40; ++step) {
      trainer.state.set(step);
      ASSERT_TRUE(trainer.checkpointer->after_step(step));
    }
    ASSERT_TRUE(trainer.checkpointer->finish());
  });
  EXPECT_GT(told, 0);
  EXPECT_EQ(loaded_step(folder.path(), 2), told);
}

TEST(Checkpoint, DiskLevelsTakeTurns) {
  const TemporaryFolder folder;
  std::vector<std::string> saved;
  run_ranks(2, [&](Communicator& comm) {
    CheckpointConfig config = shared_config(folder.path() / "shared");
    config.local = folder.path() / "local";
    config.interval_s = 1e-9;  // both are always due
    Trainer trainer(comm, config);
    std::int64_t saves = 0;
    trainer.checkpointer->on_saved([&](const Saved& told) {
      saved.emplace_back(told.level);
      ++saves;
    });
    for (std::int64_t step = 1; largest(comm, saves).value_or(4) < 4; ++step) {
      trainer.state.set(step);
      ASSERT_TRUE(trainer.checkpointer->after_step(step));
    }
    ASSERT_TRUE(trainer.checkpointer->finish());
  });
  ASSERT_GE(saved.size(), 4U);
  saved.resize(4);
  EXPECT_THAT(saved, ElementsAre("local", "shared", "local", "shared"));
}

TEST(Checkpoint, TheFinalSetReplacesWhatIsThere) {
  const TemporaryFolder folder;
  const fs::path final_set = folder.path() / "final";
  for (const std::int64_t step : {10, 20}) {
    run_ranks(2, [&](Communicator& comm) {
      Trainer trainer(comm, test_config());
      trainer.state.set(step);
      const auto saved = trainer.checkpointer->save_to(final_set, step);
      ASSERT_TRUE(saved) << saved.error().message;
    });
    run_ranks(3, [&](Communicator& comm) {
      Trainer trainer(comm, test_config());
      const auto loaded = trainer.checkpointer->load_from(final_set);
      ASSERT_TRUE(loaded) << loaded.error().message;
      EXPECT_EQ(loaded->step, step);
      EXPECT_TRUE(trainer.state.is(step));
    });
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << "leftovers";
}

TEST(Checkpoint, TheFinalSetCountsAlsoWhereTheOldOneCannotBeRemoved) {
  const TemporaryFolder folder;
  const fs::path final_set = folder.path() / "final";
  const auto save = [&](std::int64_t step) {
    run_ranks(2, [&](Communicator& comm) {
      Trainer trainer(comm, test_config());
      trainer.state.set(step);
      const auto saved = trainer.checkpointer->save_to(final_set, step);
      EXPECT_TRUE(saved) << saved.error().message;
    });
  };
  save(10);
  fs::create_directory(final_set / "busy");
  if (::mount("none", (final_set / "busy").c_str(), "tmpfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "this user cannot mount";
  }
  save(20);
  EXPECT_EQ(read_manifest(final_set)->identity.step, 20);
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    ::umount2((entry.path() / "busy").c_str(), MNT_DETACH);
  }
}

TEST(Checkpoint, TwoStartsOfOneRunWriteBesideEachOther) {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {3});
  save_steps(folder.path(), 3, {3});
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(3, 3));
  EXPECT_EQ(loaded_step(folder.path(), 2), 3);
}

TEST(Checkpoint, SweepsAgedLeftovers) {
  const TemporaryFolder folder;
  save_steps(folder.path(), 1, {3});
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const char* name : {"step-0000000009-run-1-aaaa",
                           "step-0000000009-other-1-aaaa",
                           "step-0000000009-run-2-bbbb",
                           "notes"}) {
    fs::create_directories(folder.path() / name);
    std::ofstream(folder.path() / name / "shard-00000") << "x";
    fs::last_write_time(folder.path() / name / "shard-00000", old);
    fs::last_write_time(folder.path() / name, old);
  }
  fs::last_write_time(folder.path() / "step-0000000009-run-2-bbbb",
                      fs::file_time_type::clock::now());
  EXPECT_EQ(loaded_step(folder.path(), 1), 3);
  EXPECT_FALSE(fs::exists(folder.path() / "step-0000000009-run-1-aaaa"));
  EXPECT_FALSE(fs::exists(folder.path() / "step-0000000009-other-1-aaaa"))
      << "of an earlier autocloud-run, whose id was another";
  EXPECT_TRUE(fs::exists(folder.path() / "step-0000000009-run-2-bbbb")) << "too young";
  EXPECT_TRUE(fs::exists(folder.path() / "notes"));
}

}  // namespace
}  // namespace acb::train

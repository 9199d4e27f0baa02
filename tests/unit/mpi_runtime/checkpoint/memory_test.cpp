// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/memory.h"

#include "mpi_runtime/checkpoint/memory_level.h"
#include "mpi_runtime/checkpoint/set_folder.h"
#include "tests/unit/mpi_runtime/checkpoint/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <set>

namespace acb::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

void fill_with(std::span<std::byte> into, int value) {
  std::fill(into.begin(), into.end(), static_cast<std::byte>(value));
}

std::vector<std::int64_t> sound_steps(const fs::path& file) {
  std::vector<std::int64_t> steps;
  const auto shard = MemoryShard::open(file);
  EXPECT_TRUE(shard) << shard.error().message;
  for (const MemoryCopy& copy : shard->sound_copies()) {
    EXPECT_EQ(copy.bytes.front(), static_cast<std::byte>(copy.step));
    EXPECT_EQ(copy.bytes.back(), static_cast<std::byte>(copy.step));
    steps.push_back(copy.step);
  }
  return steps;
}

TEST(MemoryShard, HoldsTheLastTwoSteps) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a.own";
  auto shard = MemoryShard::create(file, 10000);
  ASSERT_TRUE(shard) << shard.error().message;
  EXPECT_THAT(sound_steps(file), ElementsAre());
  for (int step = 1; step <= 5; ++step) {
    ASSERT_TRUE(shard->write(step, 10000, [&](auto into) { fill_with(into, step); }));
  }
  EXPECT_THAT(sound_steps(file), ElementsAre(5, 4));
}

TEST(MemoryShard, AWriterKilledInMidCopySpoilsOnlyTheOlderStep) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a.own";
  const pid_t child = ::fork();
  if (child == 0) {
    auto shard = MemoryShard::create(file, 100000);
    for (int step = 1; step <= 3; ++step) {
      static_cast<void>(shard->write(step, 100000, [&](std::span<std::byte> into) {
        if (step == 3) {
          fill_with(into.first(50000), 3);
          ::kill(::getpid(), SIGKILL);
        }
        fill_with(into, step);
      }));
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(sound_steps(file), ElementsAre(2));
}

TEST(MemoryShard, AFlippedBitSpoilsItsCopyAlone) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a.own";
  auto shard = MemoryShard::create(file, 4096);
  for (int step = 1; step <= 2; ++step) {
    auto written = shard->write(step, 4096, [&](auto into) { fill_with(into, step); });
    ASSERT_TRUE(written);
    if (step == 2) {
      const_cast<std::byte&>((*written)[100]) ^= std::byte{1};  // as a bad memory cell would
    }
  }
  EXPECT_THAT(sound_steps(file), ElementsAre(1));
}

TEST(MemoryShard, RefusesMoreThanItsCapacity) {
  const TemporaryFolder folder;
  auto shard = MemoryShard::create(folder.path() / "a.own", 4096);
  const auto written = shard->write(1, 4097, [](auto) {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::exhausted);
}

TEST(Partners, AreOnAnotherNode) {
  EXPECT_THAT(partners(std::vector<std::string>{"a", "b", "c"}), ElementsAre(1, 2, 0));
  EXPECT_THAT(partners(std::vector<std::string>{"a", "a", "b"}), ElementsAre(2, 2, 0));
  EXPECT_THAT(partners(std::vector<std::string>{"a", "b", "a", "b"}), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(partners(std::vector<std::string>{"a", "a"}), ElementsAre(-1, -1));
}

/// A job whose nodes have a memory folder each, beside one another.
class MemoryJob {
 public:
  /// Starts ranks on these nodes, loads, and trains `steps` more steps, saving each to memory.
  /// Returns the step loaded; -1 for none.
  std::int64_t start(const std::vector<std::string>& nodes, int steps) {
    ++start_;
    std::mutex mutex;
    std::set<std::int64_t> loaded;
    run_ranks(static_cast<int>(nodes.size()), [&](Communicator& comm) {
      const std::string& node = nodes[static_cast<std::size_t>(comm.rank())];
      CheckpointConfig config = test_config(node, start_);
      config.memory = memory(node);
      config.shared = shared();
      Trainer trainer(comm, config);
      const std::int64_t from = trainer.load();
      EXPECT_TRUE(from < 0 || trainer.state.is(from)) << trainer.error;
      for (std::int64_t step = std::max<std::int64_t>(from, 0) + 1;
           steps > 0 && step <= from + steps;
           ++step) {
        trainer.state.set(step);
        ASSERT_TRUE(trainer.checkpointer->after_step(step));
      }
      const std::lock_guard lock(mutex);
      loaded.insert(from);
    });
    EXPECT_EQ(loaded.size(), 1U);
    return *loaded.begin();
  }
  void lose(const std::string& node) { fs::remove_all(folder_.path() / node); }
  [[nodiscard]] fs::path memory(const std::string& node) const { return folder_.make(node); }
  [[nodiscard]] fs::path shared() const { return folder_.make("shared"); }

 private:
  TemporaryFolder folder_;
  int start_ = 0;
};

TEST(MemoryLevel, SurvivesTheLossOfAllRanks) {
  MemoryJob job;
  EXPECT_EQ(job.start({"a", "b"}, 5), -1);
  EXPECT_EQ(job.start({"a", "b"}, 3), 4);
  EXPECT_EQ(job.start({"a", "b"}, 0), 7);
}

class LostNode : public ::testing::TestWithParam<std::string> {};

TEST_P(LostNode, CostsNothingAndTheRestGoesOn) {
  MemoryJob job;
  job.start({"a", "b", "c", "d"}, 4);
  job.lose(GetParam());
  std::vector<std::string> rest = {"a", "b", "c", "d"};
  std::erase(rest, GetParam());
  EXPECT_EQ(job.start(rest, 2), 3);
  job.lose(rest[1]);
  EXPECT_EQ(job.start({rest[0], rest[2]}, 0), 5) << "then " << rest[1];
}
INSTANTIATE_TEST_SUITE_P(Of, LostNode, ::testing::Values("a", "b", "c", "d"));

TEST(MemoryLevel, WorksWithSeveralRanksOnANode) {
  MemoryJob job;
  job.start({"a", "a", "b", "b", "b"}, 3);
  job.lose("b");
  EXPECT_EQ(job.start({"a"}, 0), 2);
}

TEST(MemoryLevel, TwoNeighboursLostLeaveOnlyTheDisk) {
  MemoryJob job;
  job.start({"a", "b", "c"}, 4);
  job.lose("a");
  job.lose("b");
  EXPECT_EQ(job.start({"c"}, 0), -1);
}

TEST(MemoryLevel, OlderSetsGoOnceTheNewOneIsWhole) {
  MemoryJob job;
  job.start({"a", "b"}, 3);
  job.start({"a", "b"}, 1);
  EXPECT_EQ(memory_files(job.memory("a")).size(), 4U)
      << "one save of the new start is not yet known";
  job.start({"a", "b"}, 3);
  EXPECT_EQ(memory_files(job.memory("a")).size(), 2U) << "its own shard and a copy";
}

TEST(MemoryLevel, TheNewestStepWinsWhateverItsLevel) {
  MemoryJob job;
  job.start({"a", "b"}, 3);
  run_ranks(2, [&](Communicator& comm) {
    CheckpointConfig config = test_config("x", 9);
    config.shared = job.shared();
    Trainer trainer(comm, config);
    trainer.state.set(50);
    ASSERT_TRUE(trainer.checkpointer->save_now(50, SaveReason::leaving));
  });
  EXPECT_EQ(job.start({"a", "b", "c"}, 0), 50);
}

TEST(MemoryLevel, ANodeWithoutRoomGivesTheLevelUpAndTrainingGoesOn) {
  MemoryJob job;
  run_ranks(2, [&](Communicator& comm) {
    const std::string node = comm.rank() == 0 ? "a" : "b";
    CheckpointConfig config = test_config(node, 1);
    config.memory = job.memory(node);
    Trainer trainer(comm, config);
    if (comm.rank() == 1) {
      fs::remove_all(config.memory);
    }
    for (std::int64_t step = 1; step <= 3; ++step) {
      trainer.state.set(step);
      ASSERT_TRUE(trainer.checkpointer->after_step(step));
    }
    EXPECT_FALSE(trainer.checkpointer->save_now(3, SaveReason::leaving));
  });
}

}  // namespace
}  // namespace acb::train

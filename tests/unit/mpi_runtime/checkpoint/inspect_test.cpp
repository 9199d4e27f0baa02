// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/inspect.h"

#include "tests/unit/mpi_runtime/checkpoint/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace acb::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

fs::path save_final(const TemporaryFolder& folder, int ranks, std::int64_t step, float change = 0) {
  const fs::path set = folder.path() / ("final-" + std::to_string(ranks));
  run_ranks(ranks, [&](Communicator& comm) {
    Trainer trainer(comm, test_config());
    trainer.state.set(step);
    if (comm.rank() == 0) {
      trainer.state.weights()[0] += change;
    }
    ASSERT_TRUE(trainer.checkpointer->save_to(set, step));
  });
  return set;
}

TEST(WeightsHash, IsTheSameHoweverManyRanksSaved) {
  const TemporaryFolder folder;
  const auto expected = weights_sha256(save_final(folder, 1, 5));
  ASSERT_TRUE(expected) << expected.error().message;
  EXPECT_EQ(expected->size(), 64U);
  for (int ranks = 2; ranks <= 4; ++ranks) {
    EXPECT_EQ(weights_sha256(save_final(folder, ranks, 5)).value(), *expected) << ranks;
  }
  EXPECT_NE(weights_sha256(save_final(folder, 2, 5, 0.001F)).value(), *expected);
}

TEST(WeightsHash, NamesASectionThatIsNotThere) {
  const TemporaryFolder folder;
  const auto set = find_set(save_final(folder, 2, 5));
  ASSERT_TRUE(set);
  EXPECT_NE(section_sha256(*set, "momentum").value(), section_sha256(*set, "weights").value());
  const auto hash = section_sha256(*set, "nothing");
  ASSERT_FALSE(hash);
  EXPECT_EQ(hash.error().code, ErrorCode::not_found);
}

TEST(Verify, FindsADamagedShard) {
  const TemporaryFolder folder;
  const fs::path path = save_final(folder, 3, 5);
  EXPECT_TRUE(verify_set(*find_set(path)));
  std::fstream(shard_path(path, 1), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-9, std::ios::end)
      .put('x');
  const auto verified = verify_set(*find_set(path));
  ASSERT_FALSE(verified);
  EXPECT_THAT(verified.error().message, HasSubstr("shard-00001: its checksum"));
  EXPECT_FALSE(weights_sha256(path)) << "a hash of damaged bytes";
  fs::resize_file(shard_path(path, 1), fs::file_size(shard_path(path, 1)) - 1);
  EXPECT_FALSE(weights_sha256(path)) << "a hash of a part";
}

TEST(FindSet, OfALevelIsTheNewestOne) {
  const TemporaryFolder folder;
  EXPECT_EQ(find_set(folder.path()).error().code, ErrorCode::not_found);
  run_ranks(2, [&](Communicator& comm) {
    CheckpointConfig config = test_config();
    config.shared = folder.path();
    Trainer trainer(comm, config);
    for (const std::int64_t step : {3, 12}) {
      trainer.state.set(step);
      ASSERT_TRUE(trainer.checkpointer->save_now(step, SaveReason::leaving));
    }
  });
  EXPECT_EQ(find_set(folder.path())->manifest.identity.step, 12);
}

}  // namespace
}  // namespace acb::train

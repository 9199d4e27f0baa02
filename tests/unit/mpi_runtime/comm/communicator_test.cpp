// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/comm/communicator.h"

#include "tests/unit/mpi_runtime/support/ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>

namespace acb::train {
namespace {

TEST(ThreadRanks, EveryoneSendsToEveryoneAtOnce) {
  run_ranks(5, [](Communicator& comm) {
    std::vector<std::vector<std::byte>> out(5);
    std::vector<std::vector<std::byte>> in(5);
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int peer = 0; peer < 5; ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      out[i].assign(1000, static_cast<std::byte>(comm.rank() * 5 + peer));
      in[i].resize(1000);
      sends.push_back({peer, out[i]});
      receives.push_back({peer, in[i]});
    }
    ASSERT_TRUE(comm.exchange(sends, receives));
    for (int peer = 0; peer < 5; ++peer) {
      EXPECT_EQ(in[static_cast<std::size_t>(peer)],
                std::vector<std::byte>(1000, static_cast<std::byte>(peer * 5 + comm.rank())));
    }
  });
}

TEST(ThreadRanks, MessagesBetweenTwoRanksKeepTheirOrder) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<int> values(100);
    if (comm.rank() == 0) {
      std::iota(values.begin(), values.end(), 0);
      for (const int& value : values) {
        const Send send{1, std::as_bytes(std::span(&value, 1))};
        ASSERT_TRUE(comm.exchange({&send, 1}, {}));
      }
    } else {
      std::vector<Receive> receives;
      for (int& value : values) {
        receives.push_back({0, std::as_writable_bytes(std::span(&value, 1))});
      }
      ASSERT_TRUE(comm.exchange({}, receives));
      std::vector<int> expected(100);
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(values, expected);
    }
  });
}

TEST(ThreadRanks, ARankThatLeavesIsReportedAsGone) {
  std::atomic<int> told = 0;
  run_ranks(3, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      return;
    }
    const auto values = gather_values(comm, comm.rank());
    ASSERT_FALSE(values);
    EXPECT_EQ(values.error().code, ErrorCode::unavailable);
    ++told;
  });
  EXPECT_EQ(told, 2);
}

TEST(ThreadRanks, AMessageOfAnotherLengthIsAnError) {
  run_ranks(2, [](Communicator& comm) {
    std::byte bytes[2] = {};
    if (comm.rank() == 0) {
      const Send send{1, std::span(bytes, 2)};
      EXPECT_FALSE(comm.exchange({&send, 1}, {}));
    } else {
      const Receive receive{0, std::span(bytes, 1)};
      const auto done = comm.exchange({}, {&receive, 1});
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().message, "communicator: 2 bytes from rank 0, expected 1");
    }
  });
}

TEST(Gather, GivesValuesInRankOrderAtEverySize) {
  for (int size = 1; size <= 9; ++size) {
    run_ranks(size, [size](Communicator& comm) {
      const auto values = gather_values(comm, 100 + comm.rank());
      ASSERT_TRUE(values);
      ASSERT_EQ(values->size(), static_cast<std::size_t>(size));
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ((*values)[static_cast<std::size_t>(rank)], 100 + rank);
      }
      EXPECT_EQ(largest(comm, comm.rank() * 7).value_or(-1), (size - 1) * 7);
    });
  }
}

TEST(Gather, GivesTextsOfDifferentLengths) {
  run_ranks(4, [](Communicator& comm) {
    const auto texts = gather_texts(comm, std::string(static_cast<std::size_t>(comm.rank()), 'x'));
    ASSERT_TRUE(texts);
    EXPECT_EQ(*texts, (std::vector<std::string>{"", "x", "xx", "xxx"}));
  });
}

TEST(Barrier, HoldsEveryoneUntilTheLastHasCome) {
  std::atomic<int> arrived = 0;
  run_ranks(6, [&](Communicator& comm) {
    ++arrived;
    ASSERT_TRUE(barrier(comm));
    EXPECT_EQ(arrived, 6);
  });
}

TEST(MakeCommunicator, RefusesTasksOfSrunThatCannotReachEachOther) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    ASSERT_EQ(::unsetenv(name), 0);
  }
  ::setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  const auto refused = make_communicator();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("2 tasks"), std::string::npos) << refused.error().message;
  ::setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  const auto alone = make_communicator();
  ::unsetenv("SLURM_STEP_NUM_TASKS");
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ((*alone)->size(), 1);
}

}  // namespace
}  // namespace acb::train

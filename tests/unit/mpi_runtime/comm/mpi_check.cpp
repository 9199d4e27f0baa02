// SPDX-License-Identifier: Apache-2.0
// mpi_check RANKS [large], run by mpirun on that many ranks: the slot tree's sum over MPI has the
// bits of the same tree summed in one process. With "large", rank 0 also sends rank 1 more bytes
// than an int can count.
#include "mpi_runtime/comm/slot_tree.h"
#include "mpi_runtime/model/layout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

namespace acb::train {
namespace {

constexpr std::size_t kSlots = 24;
constexpr std::size_t kElements = 3 * kReduceChunk + 5 * kBlock;

std::vector<float> gradients(std::size_t slot) {
  std::mt19937 random(static_cast<unsigned>(slot));
  std::vector<float> values(kElements);
  for (float& value : values) {
    value = std::ldexp(static_cast<float>(random()) / 4e9F - 0.5F, static_cast<int>(random() % 16));
  }
  return values;
}

Result<std::vector<float>> sum_of(Communicator& comm) {
  SlotReducer reducer(comm, kSlots, kElements);
  for (std::size_t slot = reducer.slots().begin; slot < reducer.slots().end; ++slot) {
    ACB_TRY(reducer.add(slot, gradients(slot)));
  }
  std::vector<float> whole(kElements);
  const Range slice = reducer.slice();
  ACB_TRY(reducer.finish(std::span(whole).subspan(slice.begin, slice.size())));
  ACB_TRY(all_gather(comm, whole));
  return whole;
}

Status send_large(Communicator& comm) {
  constexpr std::size_t kBytes = (std::size_t{1} << 31) + 5;
  std::vector<std::byte> bytes(comm.rank() < 2 ? kBytes : 0);
  const Send send{1, bytes};
  const Receive receive{0, bytes};
  if (comm.rank() == 0) {
    bytes.front() = std::byte{1};
    bytes.back() = std::byte{2};
    return comm.exchange({&send, 1}, {});
  }
  if (comm.rank() == 1) {
    ACB_TRY(comm.exchange({}, {&receive, 1}));
    if (bytes.front() != std::byte{1} || bytes.back() != std::byte{2}) {
      return fail(ErrorCode::corrupt, "a message of 2 GiB arrived changed");
    }
  }
  return {};
}

Status run(std::string_view ranks, bool large) {
  ACB_TRY_ASSIGN(const auto comm, make_communicator());
  if (std::to_string(comm->size()) != ranks) {
    return fail(ErrorCode::invalid, "the world has " + std::to_string(comm->size()) + " ranks");
  }
  ACB_TRY_ASSIGN(const std::vector<float> over_mpi, sum_of(*comm));
  const auto alone = std::move(make_thread_ranks(1).front());
  ACB_TRY_ASSIGN(const std::vector<float> expected, sum_of(*alone));
  if (!std::equal(over_mpi.begin(), over_mpi.end(), expected.begin())) {
    return fail(ErrorCode::corrupt, "the sum over MPI has other bits");
  }
  if (large) {
    ACB_TRY(send_large(*comm));
  }
  ACB_TRY(barrier(*comm));
  if (comm->rank() == 0) {
    std::printf("%d ranks: equal bits\n", comm->size());
  }
  return {};
}

}  // namespace
}  // namespace acb::train

int main(int argc, char** argv) {
  const std::string_view ranks = argc > 1 ? argv[1] : "";
  const bool large = argc > 2 && std::string_view(argv[2]) == "large";
  if (const auto done = acb::train::run(ranks, large); !done) {
    std::fprintf(stderr, "mpi_check: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Run by mpirun: adding up the gradients of a step in the fixed tree and gathering the weights,
// against MPI_Allreduce of one vector per rank. Both see slots added locally first, since a rank
// that uses Allreduce also has to add its own. Rank 0 prints the JSON list that
// tests/bench/reduce.sh writes; medians, ours and theirs in turn.
#include "base/json.h"
#include "mpi_runtime/comm/slot_tree.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace acb::train {
namespace {

constexpr std::size_t kSlots = 24;
constexpr int kRounds = 9;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename Work>
Result<double> milliseconds(Communicator& comm, const Work& work) {
  ACB_TRY(barrier(comm));
  const auto begun = std::chrono::steady_clock::now();
  ACB_TRY(work());
  ACB_TRY(barrier(comm));
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
      .count();
}

Result<Json> measure(Communicator& comm, std::size_t elements) {
  SlotReducer reducer(comm, kSlots, elements);
  const std::vector<float> gradient(elements, 0.5F);
  std::vector<float> whole(elements);
  std::vector<float> sum(elements);
  const Range slice = reducer.slice();
  const auto ours = [&]() -> Status {
    for (std::size_t slot = reducer.slots().begin; slot < reducer.slots().end; ++slot) {
      ACB_TRY(reducer.add(slot, gradient));
    }
    ACB_TRY(reducer.finish(std::span(whole).subspan(slice.begin, slice.size())));
    return all_gather(comm, whole);
  };
  const auto theirs = [&]() -> Status {
    sum = gradient;
    for (std::size_t slot = reducer.slots().begin + 1; slot < reducer.slots().end; ++slot) {
      std::transform(sum.begin(), sum.end(), gradient.begin(), sum.begin(), std::plus<>());
    }
    const int done = MPI_Allreduce(
        MPI_IN_PLACE, sum.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return done == MPI_SUCCESS ? Status() : fail(ErrorCode::unavailable, "MPI_Allreduce");
  };
  std::vector<double> tree;
  std::vector<double> allreduce;
  for (int round = 0; round < kRounds; ++round) {
    ACB_TRY_ASSIGN(const double first, milliseconds(comm, ours));
    ACB_TRY_ASSIGN(const double second, milliseconds(comm, theirs));
    tree.push_back(first);
    allreduce.push_back(second);
  }
  const double value = median(tree);
  const double beside = median(allreduce);
  return Json{{"name",
               "sum over " + std::to_string(kSlots) + " slots, " + std::to_string(comm.size()) +
                   " ranks, " + std::to_string(elements >> 10) + "Ki parameters"},
              {"value", value},
              {"unit", "ms"},
              {"beside", "MPI_Allreduce"},
              {"beside_value", beside},
              {"ratio", beside / value}};
}

Status run() {
  ACB_TRY_ASSIGN(const auto comm, make_communicator());
  Json list = Json::array();
  for (const std::size_t elements : {std::size_t{1} << 19, std::size_t{1} << 23}) {
    ACB_TRY_ASSIGN(Json row, measure(*comm, elements));
    list.push_back(std::move(row));
  }
  if (comm->rank() == 0) {
    std::printf("%s\n", dump_json(list, 2).c_str());
  }
  return {};
}

}  // namespace
}  // namespace acb::train

int main() {
  if (const auto done = acb::train::run(); !done) {
    std::fprintf(stderr, "reduce-bench: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/comm/slot_tree.h"

#include "mpi_runtime/model/layout.h"

#include <algorithm>
#include <bit>

namespace acb::train {

namespace {

Range share(std::size_t total, int parts, int index) {
  const auto n = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  return {total * i / n, total * (i + 1) / n};
}

void collect(Range node, Range held, std::vector<Range>& into) {
  if (node.end <= held.begin || held.end <= node.begin) {
    return;
  }
  if (held.begin <= node.begin && node.end <= held.end) {
    into.push_back(node);
    return;
  }
  const std::size_t middle = split_point(node);
  collect({node.begin, middle}, held, into);
  collect({middle, node.end}, held, into);
}

}  // namespace

Range slots_of(std::size_t slots, int ranks, int rank) {
  return share(slots, ranks, rank);
}

Range slice_of(std::size_t elements, int ranks, int rank) {
  const Range blocks = share((elements + kBlock - 1) / kBlock, ranks, rank);
  return {std::min(blocks.begin * kBlock, elements), std::min(blocks.end * kBlock, elements)};
}

std::size_t split_point(Range node) {
  return node.begin + std::bit_floor(node.size() - 1);
}

std::vector<Range> subtrees(std::size_t slots, Range held) {
  std::vector<Range> found;
  if (held.size() > 0) {
    collect({0, slots}, held, found);
  }
  return found;
}

double tree_sum(std::span<const double> values) {
  if (values.empty()) {
    return 0;
  }
  if (values.size() == 1) {
    return values.front();
  }
  const std::size_t middle = split_point({0, values.size()});
  return tree_sum(values.first(middle)) + tree_sum(values.subspan(middle));
}

Result<double> tree_sum(Communicator& comm, std::span<const double> mine) {
  const auto bytes = std::as_bytes(mine);
  ACB_TRY_ASSIGN(
      const std::vector<std::string> parts,
      gather_texts(comm,
                   std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  std::vector<double> all;
  for (const std::string& part : parts) {
    const std::size_t before = all.size();
    all.resize(before + part.size() / sizeof(double));
    std::memcpy(all.data() + before, part.data(), part.size());
  }
  return tree_sum(all);
}

Status all_gather(Communicator& comm, std::span<float> whole) {
  const int ranks = comm.size();
  const auto part = [&](int rank) {
    const Range slice = slice_of(whole.size(), ranks, (rank + ranks) % ranks);
    return whole.subspan(slice.begin, slice.size());
  };
  for (int step = 0; step + 1 < ranks; ++step) {
    const Send send{(comm.rank() + 1) % ranks, std::as_bytes(part(comm.rank() - step))};
    const Receive receive{(comm.rank() + ranks - 1) % ranks,
                          std::as_writable_bytes(part(comm.rank() - step - 1))};
    ACB_TRY(comm.exchange({&send, 1}, {&receive, 1}));
  }
  return {};
}

}  // namespace acb::train

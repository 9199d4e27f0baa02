// SPDX-License-Identifier: Apache-2.0
// Collectives over any communicator.
#include "mpi_runtime/comm/communicator.h"

#include <algorithm>

namespace acb::train {

Status barrier(Communicator& comm) {
  const std::byte nothing{};
  return gather_blocks(comm, {&nothing, 1}).map([](const auto&) {});
}

Result<std::vector<std::byte>> gather_blocks(Communicator& comm, std::span<const std::byte> mine) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  const std::size_t length = mine.size();
  // In rounds of doubling distance; the block at position i is that of rank + i, until turned.
  std::vector<std::byte> blocks(ranks * length);
  std::copy(mine.begin(), mine.end(), blocks.begin());
  for (std::size_t held = 1; held < ranks; held *= 2) {
    const std::size_t count = std::min(held, ranks - held) * length;
    const Send send{static_cast<int>((rank + ranks - held) % ranks),
                    std::span<const std::byte>(blocks).first(count)};
    const Receive receive{static_cast<int>((rank + held) % ranks),
                          std::span<std::byte>(blocks).subspan(held * length, count)};
    ACB_TRY(comm.exchange({&send, 1}, {&receive, 1}));
  }
  const auto turn = static_cast<std::ptrdiff_t>(((ranks - rank) % ranks) * length);
  std::rotate(blocks.begin(), blocks.begin() + turn, blocks.end());
  return blocks;
}

Result<std::vector<std::string>> gather_texts(Communicator& comm, std::string_view mine) {
  ACB_TRY_ASSIGN(const std::vector<std::size_t> lengths, gather_values(comm, mine.size()));
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded(mine);
  padded.resize(longest);
  ACB_TRY_ASSIGN(const std::vector<std::byte> blocks,
                 gather_blocks(comm, std::as_bytes(std::span(padded))));
  std::vector<std::string> texts(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    texts[i].assign(reinterpret_cast<const char*>(blocks.data()) + i * longest, lengths[i]);
  }
  return texts;
}

Result<std::int64_t> largest(Communicator& comm, std::int64_t mine) {
  ACB_TRY_ASSIGN(const std::vector<std::int64_t> values, gather_values(comm, mine));
  return *std::max_element(values.begin(), values.end());
}

Result<Status> agree(Communicator& comm, const Status& mine) {
  const std::string text =
      mine ? ""
           : static_cast<char>('A' + static_cast<int>(mine.error().code)) + mine.error().message;
  ACB_TRY_ASSIGN(const std::vector<std::string> all, gather_texts(comm, text));
  for (const std::string& told : all) {
    if (!told.empty()) {
      return Status(fail(static_cast<ErrorCode>(told[0] - 'A'), told.substr(1)));
    }
  }
  return Status();
}

}  // namespace acb::train

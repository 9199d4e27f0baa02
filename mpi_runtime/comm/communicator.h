// SPDX-License-Identifier: Apache-2.0
// Messages between the ranks of a run. Two implementations: MPI, and threads of one process.
//
// All ranks make the same calls in the same order. Calls block. One thread at a time may use a
// communicator (MPI is initialised with MPI_THREAD_SERIALIZED for this): nothing in the background
// communicates. After an error the communicator is of no further use; what helps is a new start.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace acb::train {

struct Send {
  int to = 0;
  std::span<const std::byte> bytes;
};
struct Receive {
  int from = 0;
  std::span<std::byte> bytes;  ///< exactly as long as what the other side sends
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// All of these messages, of any size, in both directions at once; returns when every one is
  /// complete. It cannot deadlock as long as each send meets its receive in the other rank's
  /// exchange. Messages between two ranks arrive in the order in which they are listed; a rank may
  /// send to itself. `unavailable`: a rank is gone.
  [[nodiscard]] virtual Status exchange(std::span<const Send> sends,
                                        std::span<const Receive> receives) = 0;

 protected:
  Communicator() = default;
  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;
};

/// MPI where this process was started by mpirun (its launcher's variables say so) and the build has
/// MPI; otherwise the one rank of a world of one (`invalid` in a Slurm step of more tasks). The MPI
/// one initialises MPI and finalises it when destroyed, so there is one at a time.
[[nodiscard]] Result<std::unique_ptr<Communicator>> make_communicator();

/// The ranks of a world inside this process, one for each thread. A rank that is destroyed counts
/// as gone: whoever waits for it gets `unavailable`.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_thread_ranks(int size);

/// Returns when every rank has called it.
[[nodiscard]] Status barrier(Communicator& comm);

/// Every rank's block, in rank order; all are `mine.size()` long. Takes log2(size) rounds (Bruck et
/// al. 1997, "Efficient algorithms for all-to-all communications"). For small values.
[[nodiscard]] Result<std::vector<std::byte>> gather_blocks(Communicator& comm,
                                                           std::span<const std::byte> mine);
/// Every rank's text, in rank order, whatever their lengths.
[[nodiscard]] Result<std::vector<std::string>> gather_texts(Communicator& comm,
                                                            std::string_view mine);

/// Every rank's value, in rank order.
template <typename T>
[[nodiscard]] Result<std::vector<T>> gather_values(Communicator& comm, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  ACB_TRY_ASSIGN(const std::vector<std::byte> blocks,
                 gather_blocks(comm, std::as_bytes(std::span(&mine, 1))));
  std::vector<T> values(blocks.size() / sizeof(T));
  std::memcpy(values.data(), blocks.data(), blocks.size());
  return values;
}

/// The largest of the ranks' values: what they use to agree ("has anyone been told to stop?").
[[nodiscard]] Result<std::int64_t> largest(Communicator& comm, std::int64_t mine);

/// The first error in rank order, the same on all ranks, or success if none has one. The outer
/// result is the communicator's.
[[nodiscard]] Result<Status> agree(Communicator& comm, const Status& mine);

}  // namespace acb::train

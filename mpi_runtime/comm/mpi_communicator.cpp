// SPDX-License-Identifier: Apache-2.0
// The only file that includes mpi.h.
#include "mpi_runtime/comm/communicator.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace acb::train {

namespace {

// MPI 3 counts in int: longer messages go in pieces, cut alike on both sides; messages between two
// ranks with one tag do not overtake each other.
constexpr std::size_t kPiece = std::size_t{1} << 30;
constexpr int kTag = 0;

Status check(int code, std::string_view what) {
  if (code == MPI_SUCCESS) {
    return {};
  }
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return fail(ErrorCode::unavailable,
              "communicator: " + std::string(what) + ": " +
                  std::string(text.data(), static_cast<std::size_t>(length)));
}

class MpiRank final : public Communicator {
 public:
  MpiRank() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  MpiRank(const MpiRank&) = delete;
  MpiRank& operator=(const MpiRank&) = delete;
  ~MpiRank() override { MPI_Finalize(); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  [[nodiscard]] Status exchange(std::span<const Send> sends,
                                std::span<const Receive> receives) override {
    requests_.clear();
    for (const Receive& receive : receives) {
      for (std::size_t at = 0; at < receive.bytes.size(); at += kPiece) {
        const auto piece = receive.bytes.subspan(at, std::min(kPiece, receive.bytes.size() - at));
        ACB_TRY(start(receive, piece));
      }
    }
    for (const Send& send : sends) {
      for (std::size_t at = 0; at < send.bytes.size(); at += kPiece) {
        const auto piece = send.bytes.subspan(at, std::min(kPiece, send.bytes.size() - at));
        ACB_TRY(start(send, piece));
      }
    }
    return check(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
        "exchanging messages");
  }

 private:
  Status start(const Receive& receive, std::span<std::byte> piece) {
    return check(MPI_Irecv(piece.data(),
                           static_cast<int>(piece.size()),
                           MPI_BYTE,
                           receive.from,
                           kTag,
                           MPI_COMM_WORLD,
                           &requests_.emplace_back()),
                 "receiving from rank " + std::to_string(receive.from));
  }
  Status start(const Send& send, std::span<const std::byte> piece) {
    return check(MPI_Isend(piece.data(),
                           static_cast<int>(piece.size()),
                           MPI_BYTE,
                           send.to,
                           kTag,
                           MPI_COMM_WORLD,
                           &requests_.emplace_back()),
                 "sending to rank " + std::to_string(send.to));
  }

  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> requests_;
};

// Open MPI's mpirun, PMI-1 launchers (MPICH's mpiexec, srun --mpi=pmi2) and PMIx ones.
bool started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_RANK") != nullptr ||
         std::getenv("PMIX_RANK") != nullptr;
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_communicator() {
  if (!started_by_mpirun()) {
    // srun without an MPI plugin starts tasks that know nothing of each other: as many runs at
    // once.
    const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
    if (tasks != nullptr && std::string_view(tasks) != "1") {
      return fail(ErrorCode::invalid,
                  "communicator: srun has started " + std::string(tasks) +
                      " tasks that cannot reach each other: use mpirun, or srun --mpi=pmix");
    }
    return std::move(make_thread_ranks(1).front());
  }
  int provided = MPI_THREAD_SINGLE;
  ACB_TRY(check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
                "initialising MPI"));
  auto rank = std::make_unique<MpiRank>();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (provided < MPI_THREAD_SERIALIZED) {
    return fail(ErrorCode::unavailable,
                "communicator: this MPI lets only its first thread call it "
                "(MPI_THREAD_SERIALIZED is needed)");
  }
  return rank;
}

}  // namespace acb::train

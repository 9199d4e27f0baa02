// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/memory.h"

#include "base/files.h"
#include "mpi_runtime/checkpoint/shard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace acb::train {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t kHeads = 4096;
constexpr std::size_t kHeadStride = 64;

std::size_t file_size(std::size_t capacity) {
  return kHeads + 2 * capacity;
}

Result<std::byte*> map(const fs::path& path, int fd, std::size_t bytes, int protection) {
  void* base = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return fail_errno("checkpoint: mapping " + path.string());
  }
  return static_cast<std::byte*>(base);
}
}  // namespace

struct MemoryShard::Head {
  std::uint64_t sequence = 0;
  std::int64_t step = 0;
  std::uint64_t bytes = 0;
  std::uint64_t data_check = 0;
  std::uint64_t head_check = 0;

  [[nodiscard]] std::uint64_t expected_check() const {
    return checksum(std::as_bytes(std::span(this, 1)).first(offsetof(Head, head_check)));
  }
};

Result<MemoryShard> MemoryShard::create(const fs::path& path, std::size_t capacity) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) {
    return fail_errno("checkpoint: " + path.string());
  }
  const std::size_t page = (capacity + kHeads - 1) / kHeads * kHeads;
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(file_size(page)));
      error != 0) {
    ::unlink(path.c_str());
    errno = error;
    return fail_errno("checkpoint: memory for " + path.string());
  }
  ACB_TRY_ASSIGN(std::byte * base, map(path, fd.get(), file_size(page), PROT_READ | PROT_WRITE));
  return MemoryShard(base, page);
}

Result<MemoryShard> MemoryShard::open(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return fail_errno("checkpoint: " + path.string());
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes <= kHeads || (bytes - kHeads) % (2 * kHeads) != 0) {
    return fail(ErrorCode::corrupt, "checkpoint: " + path.string() + ": no memory shard's size");
  }
  ACB_TRY_ASSIGN(std::byte * base, map(path, fd.get(), bytes, PROT_READ));
  return MemoryShard(base, (bytes - kHeads) / 2);
}

MemoryShard::MemoryShard(MemoryShard&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), capacity_(other.capacity_) {}

MemoryShard& MemoryShard::operator=(MemoryShard&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

MemoryShard::~MemoryShard() {
  if (base_ != nullptr) {
    ::munmap(base_, file_size(capacity_));
  }
}

MemoryShard::Head MemoryShard::head(int buffer) const {
  Head head;
  std::memcpy(&head, base_ + static_cast<std::size_t>(buffer) * kHeadStride, sizeof(head));
  return head;
}

// The fences keep the compiler from moving the data's stores across the head's: a kill may come
// between any two of them, and what is in the mapping then is what the next reader sees.
void MemoryShard::set_head(int buffer, const Head& head) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::memcpy(base_ + static_cast<std::size_t>(buffer) * kHeadStride, &head, sizeof(head));
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

std::span<std::byte> MemoryShard::buffer(int index) const {
  return {base_ + kHeads + static_cast<std::size_t>(index) * capacity_, capacity_};
}

Result<std::span<const std::byte>> MemoryShard::write(
    std::int64_t step, std::size_t bytes, const std::function<void(std::span<std::byte>)>& fill) {
  if (bytes > capacity_) {
    return fail(ErrorCode::exhausted,
                "checkpoint: memory: " + std::to_string(bytes) + " bytes into a buffer of " +
                    std::to_string(capacity_));
  }
  const Head heads[] = {head(0), head(1)};
  const int target = heads[0].sequence <= heads[1].sequence ? 0 : 1;
  set_head(target, {});
  const std::span<std::byte> into = buffer(target).first(bytes);
  fill(into);
  Head written{std::max(heads[0].sequence, heads[1].sequence) + 1, step, bytes, checksum(into), 0};
  written.head_check = written.expected_check();
  set_head(target, written);
  return into;
}

std::vector<MemoryCopy> MemoryShard::sound_copies() const {
  std::vector<MemoryCopy> copies;
  for (int i = 0; i < 2; ++i) {
    const Head found = head(i);
    if (found.sequence == 0 || found.head_check != found.expected_check() ||
        found.bytes > capacity_) {
      continue;
    }
    const std::span<const std::byte> bytes = buffer(i).first(found.bytes);
    if (checksum(bytes) == found.data_check) {
      copies.push_back({found.step, bytes});
    }
  }
  std::sort(copies.begin(), copies.end(), [](const MemoryCopy& a, const MemoryCopy& b) {
    return a.step > b.step;
  });
  return copies;
}

std::vector<fs::path> memory_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".own" || entry->path().extension() == ".copy") {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace acb::train

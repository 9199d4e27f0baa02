// SPDX-License-Identifier: Apache-2.0
// A shard in a node's memory, where it outlives the ranks: a file on tmpfs with two buffers that
// are written in turn. A writer killed in mid-copy spoils the older of the two at most.
//
//   offset 0   two buffer heads of 64 bytes: sequence, step, bytes, checksum of the bytes, checksum
//              of the head so far (8 bytes each, little-endian). Sequence 0: the buffer is invalid.
//          4096          buffer 0, of the capacity the file was made with
//          4096 + cap.   buffer 1
//
// Files are named <set>.<index>-<world>.own or .copy (a partner node's shard).
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace acb::train {

/// A sound copy in one of the two buffers.
struct MemoryCopy {
  std::int64_t step = 0;
  std::span<const std::byte>
      bytes;  ///< valid as long as its MemoryShard, and until it is rewritten
};

/// One mapped file. Not thread-safe; one process writes it.
class MemoryShard {
 public:
  /// A new file for shards of up to `capacity` bytes. All of its memory is claimed here, so that
  /// a node out of memory shows as `exhausted` and never as a signal in mid-copy.
  [[nodiscard]] static Result<MemoryShard> create(const std::filesystem::path& path,
                                                  std::size_t capacity);
  /// An existing one, to read. `corrupt` if it has another size than its head says.
  [[nodiscard]] static Result<MemoryShard> open(const std::filesystem::path& path);

  MemoryShard(MemoryShard&& other) noexcept;
  MemoryShard& operator=(MemoryShard&& other) noexcept;
  MemoryShard(const MemoryShard&) = delete;
  MemoryShard& operator=(const MemoryShard&) = delete;
  ~MemoryShard();

  [[nodiscard]] std::size_t capacity() const { return capacity_; }

  /// Writes `bytes` bytes, which `fill` puts into place, as the copy of `step` over the older
  /// buffer. `exhausted`: more than the capacity. Returns the bytes.
  [[nodiscard]] Result<std::span<const std::byte>> write(
      std::int64_t step, std::size_t bytes, const std::function<void(std::span<std::byte>)>& fill);

  /// The copies whose checksums hold, newest first.
  [[nodiscard]] std::vector<MemoryCopy> sound_copies() const;

 private:
  struct Head;
  MemoryShard(std::byte* base, std::size_t capacity) : base_(base), capacity_(capacity) {}
  [[nodiscard]] Head head(int buffer) const;
  void set_head(int buffer, const Head& head);
  [[nodiscard]] std::span<std::byte> buffer(int index) const;

  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;
};

/// The shards in a node's memory folder; files that are none are passed over.
[[nodiscard]] std::vector<std::filesystem::path> memory_files(const std::filesystem::path& folder);

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a run keep what must outlive them on their node: a folder in the node's
// memory (tmpfs), private to the user. The node's agent makes it before the first rank starts and
// removes it when the run ends, or when the supervisor is gone for good. What lies in it, and its
// layout, is checkpoint/memory.h's; a file written here costs the job memory until it is removed.
#pragma once

#include "base/files.h"
#include "base/result.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace acb::train {

/// The folder for (user, run, node): <root>/autocloud-<uid>-<run>-<node>. Ranks get `root` + run as
/// AUTOCLOUD_MEMORY ("/dev/shm/autocloud-1000-<run>") and add "-<node>" by this function: the node
/// is part of the name because simulated nodes may share one /dev/shm.
[[nodiscard]] std::filesystem::path memory_folder(std::string_view autocloud_memory,
                                                  std::string_view node);
/// The value of AUTOCLOUD_MEMORY for a run of this user.
[[nodiscard]] std::string memory_prefix(const std::filesystem::path& root,
                                        unsigned uid,
                                        std::string_view run);

/// Removes this user's memory folders below `root` that no agent holds any more (one that was
/// killed could not remove its own).
void sweep_memory_folders(const std::filesystem::path& root);

/// Owns one such folder, and holds a lock on it that ends with the process: made 0700 on creation
/// (one left by this user is emptied first: it belongs to no run), removed with all that is in it
/// on destruction.
class MemoryFolder {
 public:
  /// `exists` where somebody else owns a thing of that name.
  [[nodiscard]] static Result<MemoryFolder> create(const std::filesystem::path& path);
  MemoryFolder(MemoryFolder&& other) noexcept;
  MemoryFolder& operator=(MemoryFolder&& other) noexcept;
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  ~MemoryFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  MemoryFolder(std::filesystem::path path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  UniqueFd lock_;
};

}  // namespace acb::train

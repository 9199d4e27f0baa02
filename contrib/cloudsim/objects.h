// SPDX-License-Identifier: Apache-2.0
// Stored objects: bytes in files of one folder, names in memory. Thread-safe.
#pragma once

#include "base/files.h"
#include "base/text.h"
#include "cloudsim/api_error.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acb::sim {

struct ObjectInfo {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;  ///< MD5 in hexadecimal
  WallTime modified;
};

/// The bytes of an object, whole also while the object is replaced or deleted. `fd` is shared with
/// whoever sends them.
struct OpenObject {
  ObjectInfo info;
  std::shared_ptr<UniqueFd> fd;
};

class ObjectStore {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ObjectStore>> open(std::filesystem::path folder);

  /// An upload in progress. One that is not committed leaves nothing.
  class Upload {
   public:
    virtual ~Upload() = default;
    [[nodiscard]] virtual bool append(std::string_view bytes) = 0;
    /// Stores the object. `content_md5` is base64 as in RFC 1864, empty: not checked.
    [[nodiscard]] virtual ApiResult<ObjectInfo> commit(const std::string& key,
                                                       const std::string& content_md5,
                                                       WallTime now) = 0;
  };
  [[nodiscard]] Result<std::unique_ptr<Upload>> begin();

  [[nodiscard]] ApiResult<OpenObject> get(const std::string& key) const;
  /// Deleting what is not there is fine.
  void remove(const std::string& key);
  /// Keys with the prefix after `after`, in order, at most `limit`.
  [[nodiscard]] std::vector<ObjectInfo> list(const std::string& prefix,
                                             const std::string& after,
                                             std::size_t limit) const;

 private:
  struct Stored {
    ObjectInfo info;
    std::filesystem::path file;
  };
  class FileUpload;
  explicit ObjectStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void put(ObjectInfo info, std::filesystem::path file);

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<std::string, Stored> objects_;
  std::uint64_t files_made_ = 0;
};

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
/// A Range header (RFC 9110, 14.2) of one range over `size` bytes. nullopt: the whole is to be sent
/// (none, several or malformed); an error: 416.
[[nodiscard]] ApiResult<std::optional<ByteRange>> parse_range(std::string_view header,
                                                              std::uint64_t size);

}  // namespace acb::sim

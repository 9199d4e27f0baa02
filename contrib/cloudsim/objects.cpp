// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/objects.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>

namespace acb::sim {

namespace {

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

}  // namespace

class ObjectStore::FileUpload : public ObjectStore::Upload {
 public:
  FileUpload(ObjectStore& store, std::filesystem::path file, UniqueFd fd)
      : store_(store), file_(std::move(file)), fd_(std::move(fd)), digest_(EVP_MD_CTX_new()) {
    EVP_DigestInit_ex(digest_.get(), EVP_md5(), nullptr);
  }
  FileUpload(const FileUpload&) = delete;
  FileUpload& operator=(const FileUpload&) = delete;
  ~FileUpload() override {
    if (!file_.empty()) {
      ::unlink(file_.c_str());
    }
  }

  bool append(std::string_view bytes) override {
    size_ += bytes.size();
    return EVP_DigestUpdate(digest_.get(), bytes.data(), bytes.size()) == 1 &&
           write_all(fd_.get(), bytes).has_value();
  }

  ApiResult<ObjectInfo> commit(const std::string& key,
                               const std::string& content_md5,
                               WallTime now) override {
    std::string md5(EVP_MAX_MD_SIZE, '\0');
    unsigned int length = 0;
    EVP_DigestFinal_ex(digest_.get(), reinterpret_cast<unsigned char*>(md5.data()), &length);
    md5.resize(length);
    if (!content_md5.empty() && content_md5 != base64(md5)) {
      return bad_argument("Content-MD5: '" + content_md5 + "': the bytes have " + base64(md5));
    }
    ObjectInfo info{key, size_, to_hex(md5), now};
    store_.put(info, std::exchange(file_, {}));
    return info;
  }

 private:
  ObjectStore& store_;
  std::filesystem::path file_;
  UniqueFd fd_;
  std::unique_ptr<EVP_MD_CTX, FreeDigest> digest_;
  std::uint64_t size_ = 0;
};

Result<std::unique_ptr<ObjectStore>> ObjectStore::open(std::filesystem::path folder) {
  ACB_TRY(make_folders(folder));
  return std::unique_ptr<ObjectStore>(new ObjectStore(std::move(folder)));
}

Result<std::unique_ptr<ObjectStore::Upload>> ObjectStore::begin() {
  std::filesystem::path file;
  {
    const std::scoped_lock lock(mutex_);
    file = folder_ / fmt::format("{:06}", ++files_made_);
  }
  UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) {
    return fail_errno("opening " + file.string());
  }
  return std::make_unique<FileUpload>(*this, std::move(file), std::move(fd));
}

void ObjectStore::put(ObjectInfo info, std::filesystem::path file) {
  const std::scoped_lock lock(mutex_);
  Stored& stored = objects_[info.key];
  if (!stored.file.empty()) {
    ::unlink(stored.file.c_str());
  }
  stored = {std::move(info), std::move(file)};
}

ApiResult<OpenObject> ObjectStore::get(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return not_found("object '" + key + "': no such object");
  }
  auto fd = std::make_shared<UniqueFd>(::open(found->second.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!*fd) {
    return refuse(500, "internal", "object '" + key + "': its file cannot be read");
  }
  return OpenObject{found->second.info, std::move(fd)};
}

void ObjectStore::remove(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = objects_.find(key);
  if (found != objects_.end()) {
    ::unlink(found->second.file.c_str());
    objects_.erase(found);
  }
}

std::vector<ObjectInfo> ObjectStore::list(const std::string& prefix,
                                          const std::string& after,
                                          std::size_t limit) const {
  const std::scoped_lock lock(mutex_);
  std::vector<ObjectInfo> page;
  auto each = after >= prefix && !after.empty() ? objects_.upper_bound(after)
                                                : objects_.lower_bound(prefix);
  for (; each != objects_.end() && each->first.starts_with(prefix) && page.size() < limit; ++each) {
    page.push_back(each->second.info);
  }
  return page;
}

ApiResult<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  const std::string_view range = header.starts_with(kUnit) ? header.substr(kUnit.size()) : "";
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos || range.find(',') != std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = [](std::string_view text) {
    return parse_integer("range", text, 0, INT64_MAX);
  };
  const auto first = number(range.substr(0, dash));
  const auto last = number(range.substr(dash + 1));
  const bool is_suffix = dash == 0;
  const bool is_open = dash + 1 == range.size();
  if ((!is_suffix && !first) || (!is_open && !last) || (is_suffix && is_open) ||
      (first && last && *first > *last)) {
    return std::nullopt;
  }
  const auto refused = refuse(
      416, "invalid_argument", fmt::format("Range: '{}': the object has {} bytes", header, size));
  if (is_suffix) {
    const std::uint64_t length = std::min<std::uint64_t>(static_cast<std::uint64_t>(*last), size);
    if (length == 0) {
      return refused;
    }
    return ByteRange{size - length, length};
  }
  const auto offset = static_cast<std::uint64_t>(*first);
  if (offset >= size) {
    return refused;
  }
  const std::uint64_t end =
      is_open ? size : std::min<std::uint64_t>(static_cast<std::uint64_t>(*last) + 1, size);
  return ByteRange{offset, end - offset};
}

}  // namespace acb::sim

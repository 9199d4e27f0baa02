// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/inspect.h"

#include "base/files.h"
#include "base/text.h"
#include "mpi_runtime/checkpoint/boxes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

namespace acb::train {

namespace fs = std::filesystem;

namespace {

/// A shard's file, open, with its header read.
struct OpenShard {
  UniqueFd fd;
  std::size_t head = 0;
  ShardHeader header;
};

/// Where a tensor's elements lie: (shard, part), any number of them.
using Places = std::vector<std::pair<const OpenShard*, const StoredPart*>>;
using Tensors = std::map<std::pair<std::string, std::string>, Places>;

Status read_at(const UniqueFd& fd, std::size_t at, std::span<std::byte> into) {
  for (std::size_t done = 0; done < into.size();) {
    const ssize_t got =
        ::pread(fd.get(), into.data() + done, into.size() - done, static_cast<off_t>(at + done));
    if (got < 0 && errno != EINTR) {
      return fail_errno("checkpoint: reading a shard");
    }
    if (got == 0) {
      return fail(ErrorCode::corrupt, "checkpoint: a shard ends early");
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return {};
}

Result<OpenShard> open_shard(const fs::path& folder, const StoredShard& stored) {
  const fs::path path = shard_path(folder, stored.index);
  OpenShard shard{UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), 0, {}};
  if (!shard.fd) {
    return fail_errno("checkpoint: " + path.string());
  }
  std::vector<std::byte> bytes(24);
  ACB_TRY(read_at(shard.fd, 0, bytes));
  ACB_TRY_ASSIGN(shard.head, head_size(bytes));
  if (shard.head > stored.bytes) {
    return fail(ErrorCode::corrupt, "checkpoint: " + path.string() + ": it ends in its header");
  }
  bytes.resize(shard.head);
  ACB_TRY(read_at(shard.fd, 0, bytes));
  auto header = parse_shard(bytes, stored.bytes);
  if (!header) {
    return fail_with(path.string(), header.error());
  }
  shard.header = std::move(*header);
  return shard;
}

Result<std::vector<OpenShard>> open_shards(const SetFolder& set) {
  const int world = set.manifest.identity.world;
  if (set.manifest.shards.size() != static_cast<std::size_t>(world)) {
    return fail(ErrorCode::invalid,
                fmt::format("checkpoint: {}: {} of {} shards are here; the others are on other "
                            "nodes' disks",
                            set.path.string(),
                            set.manifest.shards.size(),
                            world));
  }
  std::vector<OpenShard> shards;
  for (const StoredShard& stored : set.manifest.shards) {
    ACB_TRY_ASSIGN(OpenShard shard, open_shard(set.path, stored));
    if (!(shard.header.identity == set.manifest.identity) || shard.header.index != stored.index) {
      return fail(
          ErrorCode::corrupt,
          fmt::format(
              "checkpoint: {}: shard {} is of another set", set.path.string(), stored.index));
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

Tensors tensors_of(const std::vector<OpenShard>& shards) {
  Tensors tensors;
  for (const OpenShard& shard : shards) {
    for (const StoredPart& part : shard.header.parts) {
      tensors[{part.section, part.tensor}].emplace_back(&shard, &part);
    }
  }
  return tensors;
}

Status check_whole(const Places& places) {
  const StoredPart& first = *places.front().second;
  const auto whole = runs_of(first.shape, whole_box(first.shape));
  std::vector<Overlap> pieces;
  for (const auto& [shard, part] : places) {
    const auto shared = overlaps(runs_of(part->shape, part->box), whole);
    pieces.insert(pieces.end(), shared.begin(), shared.end());
    if (part->shape != first.shape || part->type != first.type) {
      return fail(ErrorCode::corrupt,
                  "checkpoint: tensor " + first.section + "/" + first.tensor +
                      ": its parts differ in shape or type");
    }
  }
  if (covered(std::move(pieces)) != elements_of(first.shape)) {
    return fail(ErrorCode::corrupt,
                "checkpoint: tensor " + first.section + "/" + first.tensor + ": not whole");
  }
  return {};
}

Result<std::vector<std::byte>> read_tensor(const Places& places) {
  ACB_TRY(check_whole(places));
  const StoredPart& first = *places.front().second;
  const std::size_t element = size_of(first.type);
  const auto whole = runs_of(first.shape, whole_box(first.shape));
  std::vector<std::byte> tensor(static_cast<std::size_t>(elements_of(first.shape)) * element);
  std::vector<std::byte> bytes;
  for (const auto& [shard, part] : places) {
    bytes.resize(part->bytes());
    ACB_TRY(read_at(shard->fd, shard->head + part->at, bytes));
    for (const Overlap& piece : overlaps(runs_of(part->shape, part->box), whole)) {
      std::memcpy(tensor.data() + static_cast<std::size_t>(piece.to) * element,
                  bytes.data() + static_cast<std::size_t>(piece.from) * element,
                  static_cast<std::size_t>(piece.count) * element);
    }
  }
  return tensor;
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    ok_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }
  void add(std::span<const std::byte> bytes) {
    ok_ = ok_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
  }
  [[nodiscard]] Result<std::string> finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    if (!ok_ || EVP_DigestFinal_ex(context_.get(), digest.data(), &length) != 1) {
      return fail(ErrorCode::internal, "checkpoint: OpenSSL gives no SHA-256");
    }
    return to_hex({reinterpret_cast<const char*>(digest.data()), length});
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool ok_ = false;
};

}  // namespace

Result<SetFolder> find_set(const fs::path& path) {
  auto manifest = read_manifest(path);
  if (manifest) {
    return SetFolder{path, std::move(*manifest)};
  }
  if (manifest.error().code != ErrorCode::not_found) {
    return tl::unexpected<Error>(manifest.error());
  }
  if (std::error_code error; !fs::exists(path, error) && !error) {
    return fail(ErrorCode::not_found, "checkpoint: " + path.string() + ": there is no such folder");
  }
  std::vector<SetFolder> sets = list_sets(path);
  if (sets.empty()) {
    return fail(ErrorCode::not_found, "checkpoint: " + path.string() + ": no committed set");
  }
  return std::move(sets.front());
}

Status verify_set(const SetFolder& set) {
  ACB_TRY_ASSIGN(const std::vector<OpenShard> shards, open_shards(set));
  for (const StoredShard& stored : set.manifest.shards) {
    ACB_TRY(read_shard_file(set.path, stored));
  }
  for (const auto& [name, places] : tensors_of(shards)) {
    ACB_TRY(check_whole(places));
  }
  return {};
}

Result<std::string> section_sha256(const SetFolder& set, std::string_view section) {
  // The hash of damaged bytes would look like any other.
  ACB_TRY(verify_set(set));
  ACB_TRY_ASSIGN(const std::vector<OpenShard> shards, open_shards(set));
  Sha256 hash;
  bool found = false;
  for (const auto& [name, places] : tensors_of(shards)) {
    if (name.first != section) {
      continue;
    }
    found = true;
    const StoredPart& part = *places.front().second;
    const std::string line =
        fmt::format("{} {} {}\n", name.second, name_of(part.type), fmt::join(part.shape, "x"));
    hash.add(std::as_bytes(std::span(line)));
    ACB_TRY_ASSIGN(const std::vector<std::byte> tensor, read_tensor(places));
    hash.add(tensor);
  }
  if (!found) {
    return fail(ErrorCode::not_found,
                "checkpoint: " + set.path.string() + ": section '" + std::string(section) +
                    "' has no tensors in it");
  }
  return hash.finish();
}

Result<std::string> weights_sha256(const fs::path& path) {
  ACB_TRY_ASSIGN(const SetFolder set, find_set(path));
  return section_sha256(set, "weights");
}

}  // namespace acb::train

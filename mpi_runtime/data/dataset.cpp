// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/data/dataset.h"

#include "base/files.h"
#include "base/text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace acb::train {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie");

struct OurHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t vocab;
  std::uint64_t count;
  std::array<char, 40> zeros;
};
static_assert(sizeof(OurHeader) == 64);
constexpr std::string_view kOurMagic = "ACBTOKEN";

using LlmcHeader = std::array<std::int32_t, 256>;
constexpr std::int32_t kLlmcMagic = 20240520;
constexpr int kGpt2Vocab = 50257;

template <typename Header>
bool starts_with(std::span<const std::byte> bytes, Header& header) {
  if (bytes.size() < sizeof(Header)) {
    return false;
  }
  std::memcpy(&header, bytes.data(), sizeof(Header));
  return true;
}

std::string hash_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return to_hex({reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest)});
}

Result<std::shared_ptr<const std::byte>> map_file(const std::string& name, std::size_t& size) {
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return fail_errno("data.path: " + name);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return fail_errno("data: examining: " + name);
  }
  if (status.st_size == 0) {
    return fail(ErrorCode::invalid, "data.path: " + name + ": the file is empty");
  }
  size = static_cast<std::size_t>(status.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    return fail_errno("data: mapping: " + name);
  }
  return std::shared_ptr<const std::byte>(
      static_cast<const std::byte*>(mapped),
      [mapped, size](const std::byte*) { ::munmap(mapped, size); });
}

}  // namespace

Result<Dataset> Dataset::open(const std::filesystem::path& path) {
  Dataset dataset;
  std::size_t size = 0;
  ACB_TRY_ASSIGN(dataset.mapping_, map_file(path, size));
  const std::span<const std::byte> bytes(dataset.mapping_.get(), size);
  ACB_TRY(dataset.interpret(path, bytes));
  ACB_TRY(dataset.check_tokens(path));
  dataset.hash_ = hash_of(bytes);
  return dataset;
}

Status Dataset::interpret(const std::string& name, std::span<const std::byte> bytes) {
  tokens_ = bytes.data();
  count_ = bytes.size();
  vocab_ = 256;
  std::size_t header_size = 0;
  OurHeader ours{};
  LlmcHeader llmc{};
  if (starts_with(bytes, ours) &&
      std::string_view(ours.magic.data(), ours.magic.size()) == kOurMagic) {
    if (ours.version != 1 || ours.vocab < 1 || ours.vocab > 65536) {
      return fail(ErrorCode::corrupt,
                  "data: " + name + ": token file of version " + std::to_string(ours.version) +
                      " and vocabulary " + std::to_string(ours.vocab) +
                      ": must be version 1 and 1 to 65536");
    }
    header_size = sizeof(ours);
    count_ = ours.count;
    vocab_ = static_cast<int>(ours.vocab);
  } else if (starts_with(bytes, llmc) && llmc[0] == kLlmcMagic) {
    if (llmc[1] != 1 || llmc[2] < 0) {
      return fail(ErrorCode::corrupt,
                  "data: " + name + ": llm.c token file of version " + std::to_string(llmc[1]) +
                      ": must be 1");
    }
    header_size = sizeof(llmc);
    count_ = static_cast<std::size_t>(llmc[2]);
    vocab_ = kGpt2Vocab;
  } else {
    return {};
  }
  token_bytes_ = sizeof(std::uint16_t);
  tokens_ += header_size;
  const std::size_t there = bytes.size() - header_size;
  if (there % token_bytes_ != 0 || there / token_bytes_ != count_) {
    return fail(ErrorCode::corrupt,
                "data: " + name + ": its header says " + std::to_string(count_) +
                    " tokens, but the file has " + std::to_string(there) + " bytes of them");
  }
  return {};
}

Status Dataset::check_tokens(const std::string& name) const {
  if (token_bytes_ == 1) {
    return {};
  }
  for (std::size_t i = 0; i < count_; ++i) {
    std::int32_t token = 0;
    read(i, {&token, 1});
    if (token >= vocab_) {
      return fail(ErrorCode::corrupt,
                  "data: " + name + ": token " + std::to_string(i) + " is " +
                      std::to_string(token) + ": must be below " + std::to_string(vocab_));
    }
  }
  return {};
}

void Dataset::read(std::size_t first, std::span<std::int32_t> out) const {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (token_bytes_ == 1) {
      out[i] = std::to_integer<std::int32_t>(tokens_[first + i]);
    } else {
      std::uint16_t token = 0;
      std::memcpy(&token, tokens_ + (first + i) * sizeof(token), sizeof(token));
      out[i] = token;
    }
  }
}

}  // namespace acb::train

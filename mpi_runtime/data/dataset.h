// SPDX-License-Identifier: Apache-2.0
// The tokens that a run trains on: one file, mapped into memory. Three formats, told apart by how
// the file begins:
//
//   our token file: 64 bytes of header, then uint16 tokens, all little-endian. The header is
//       "ACBTOKEN", uint32 version (1), uint32 vocabulary size, uint64 number of tokens, zeros.
//   llm.c's token file, version 1: 256 int32 (20240520, 1, number of tokens, zeros), then uint16
//       tokens of GPT-2's vocabulary of 50257.
//   anything else is text: each byte is a token, and the vocabulary is 256.
//
// A Dataset does not change; any number of threads may read it.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace acb::train {

class Dataset {
 public:
  /// `corrupt` for a token file whose size is not what its header says or that holds a token
  /// outside its vocabulary. Reads the whole file once, for the hash and this check.
  [[nodiscard]] static Result<Dataset> open(const std::filesystem::path& path);

  [[nodiscard]] std::size_t size() const { return count_; }  ///< tokens
  [[nodiscard]] int vocab() const { return vocab_; }
  /// XXH3-128 of the file's bytes, in hexadecimal.
  [[nodiscard]] const std::string& hash() const { return hash_; }

  /// Tokens [first, first + out.size()), which must lie within size().
  void read(std::size_t first, std::span<std::int32_t> out) const;

 private:
  Dataset() = default;
  [[nodiscard]] Status interpret(const std::string& name, std::span<const std::byte> bytes);
  [[nodiscard]] Status check_tokens(const std::string& name) const;

  std::shared_ptr<const std::byte> mapping_;
  const std::byte* tokens_ = nullptr;
  std::size_t token_bytes_ = 1;
  std::size_t count_ = 0;
  int vocab_ = 0;
  std::string hash_;
};

}  // namespace acb::train

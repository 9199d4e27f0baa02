// SPDX-License-Identifier: Apache-2.0
// One rank's share of a checkpoint as bytes, the same in memory, on disk and on the wire:
//
//   offset 0   8 bytes  "ACBSHARD"
//          8   4 bytes  format version (little-endian, as all numbers here)
//         12   4 bytes  zero
//         16   8 bytes  length of the header
//         24            header: JSON, what is in ShardHeader
//   then, from the next multiple of 64, the parts' elements, each part at its own multiple of 64
//
// The checksum over all of it (XXH3, 64 bits) is kept outside: in the manifest, or in the memory
// buffer's own header.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "mpi_runtime/checkpoint/section.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace acb::train {

inline constexpr int kShardFormat = 1;

struct StoredPart {
  std::string section;
  std::string tensor;
  std::vector<std::int64_t> shape;
  ElementType type = ElementType::f32;
  Box box;
  std::size_t at = 0;  ///< of the first element, from the end of the header
  [[nodiscard]] std::size_t bytes() const;
};

/// What a set as a whole is; equal in all of its shards.
struct SetIdentity {
  std::string set;  ///< <run>-<start>-<random>
  std::int64_t step = 0;
  int world = 1;  ///< ranks that saved it: it is whole with shards 0 to world - 1
  std::string settings_hash;
  std::string dataset_hash;
  std::string inexact_reason;  ///< empty: exact
  friend bool operator==(const SetIdentity&, const SetIdentity&) = default;
};

struct ShardHeader {
  SetIdentity identity;
  int index = 0;                      ///< the rank
  std::vector<std::string> sections;  ///< all names, also those without a part here
  Json state = Json::object();        ///< section name to small state; rank 0's shard only
  std::vector<StoredPart> parts;
};

[[nodiscard]] Json to_json(const SetIdentity& identity);
[[nodiscard]] Result<SetIdentity> identity_from(const Json& json);
[[nodiscard]] std::string to_text(const ShardHeader& header);
[[nodiscard]] Result<ShardHeader> header_from(std::string_view text);

/// A shard about to be written: the header's text and where the live elements are.
struct ShardPlan {
  std::string header;
  std::vector<std::string> sections;
  std::vector<StoredPart> parts;
  std::vector<const std::byte*> sources;
  std::size_t bytes = 0;  ///< of the whole shard
};
/// Runs the sections' `save` where `index` is 0.
[[nodiscard]] ShardPlan plan_shard(const SetIdentity& identity,
                                   int index,
                                   std::span<const Section> sections);
/// Copies the live elements: the snapshot. `into` is plan.bytes long.
void write_shard(const ShardPlan& plan, std::span<std::byte> into);

/// The header, or `corrupt` where this is no shard of a format that we know. `bytes` may end after
/// the head; `total` is the whole shard's length, in which every part must lie.
[[nodiscard]] Result<ShardHeader> parse_shard(std::span<const std::byte> bytes, std::size_t total);
/// The length of the head (prefix and header, up to the elements), from the first 24 bytes.
[[nodiscard]] Result<std::size_t> head_size(std::span<const std::byte> prefix);

/// The first tensor among the live elements with a NaN or an infinity in it, else empty.
[[nodiscard]] std::string find_non_finite(const ShardPlan& plan);

[[nodiscard]] std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace acb::train

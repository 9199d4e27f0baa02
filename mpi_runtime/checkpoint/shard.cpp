// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/shard.h"

#include "mpi_runtime/checkpoint/boxes.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace acb::train {

namespace {

constexpr std::string_view kMagic = "ACBSHARD";
constexpr std::size_t kPrefix = 24;
constexpr std::size_t kAlignment = 64;
static_assert(std::endian::native == std::endian::little, "shards are little-endian");

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

tl::unexpected<Error> broken(std::string_view why) {
  return fail(ErrorCode::corrupt, "checkpoint: shard: " + std::string(why));
}

Result<ElementType> type_from(std::string_view name) {
  for (const auto type : {ElementType::f32, ElementType::bf16, ElementType::i64, ElementType::u8}) {
    if (name_of(type) == name) {
      return type;
    }
  }
  return broken("unknown element type '" + std::string(name) + "'");
}

Result<std::vector<std::int64_t>> integers(const Json& json, std::string_view key) {
  std::vector<std::int64_t> values;
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array()) {
    return broken("no list '" + std::string(key) + "'");
  }
  for (const Json& value : *found) {
    if (!value.is_number_integer()) {
      return broken("'" + std::string(key) + "' is no list of integers");
    }
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

Json to_json(const StoredPart& part) {
  return {{"section", part.section},
          {"tensor", part.tensor},
          {"shape", part.shape},
          {"type", name_of(part.type)},
          {"offset", part.box.offset},
          {"extent", part.box.extent},
          {"at", part.at}};
}

Result<StoredPart> part_from(const Json& json) {
  StoredPart part;
  part.section = json_or<std::string>(json, "section", "");
  part.tensor = json_or<std::string>(json, "tensor", "");
  ACB_TRY_ASSIGN(part.shape, integers(json, "shape"));
  ACB_TRY_ASSIGN(part.type, type_from(json_or<std::string>(json, "type", "")));
  ACB_TRY_ASSIGN(part.box.offset, integers(json, "offset"));
  ACB_TRY_ASSIGN(part.box.extent, integers(json, "extent"));
  part.at = json_or<std::size_t>(json, "at", 0);
  ACB_TRY(check_box(part.tensor, part.shape, part.box));
  return part;
}

template <typename T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// All exponent bits set: an infinity or a NaN.
bool all_finite(ElementType type, std::span<const std::byte> bytes) {
  std::uint32_t bad = 0;
  if (type == ElementType::f32) {
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      bad |= static_cast<std::uint32_t>((number_at<std::uint32_t>(bytes, i) & 0x7F800000U) ==
                                        0x7F800000U);
    }
  } else if (type == ElementType::bf16) {
    for (std::size_t i = 0; i + 2 <= bytes.size(); i += 2) {
      bad |= static_cast<std::uint32_t>((number_at<std::uint16_t>(bytes, i) & 0x7F80U) == 0x7F80U);
    }
  }
  return bad == 0;
}

}  // namespace

std::size_t StoredPart::bytes() const {
  return static_cast<std::size_t>(elements_of(box.extent)) * size_of(type);
}

Json to_json(const SetIdentity& identity) {
  return {{"format", kShardFormat},
          {"set", identity.set},
          {"step", identity.step},
          {"world_size", identity.world},
          {"settings_hash", identity.settings_hash},
          {"dataset_hash", identity.dataset_hash},
          {"exact", identity.inexact_reason.empty()},
          {"reason", identity.inexact_reason}};
}

Result<SetIdentity> identity_from(const Json& json) {
  if (json_or<int>(json, "format", 0) != kShardFormat) {
    return broken("format " + std::to_string(json_or<int>(json, "format", 0)) +
                  ", this program reads " + std::to_string(kShardFormat));
  }
  SetIdentity identity{json_or<std::string>(json, "set", ""),
                       json_or<std::int64_t>(json, "step", -1),
                       json_or<int>(json, "world_size", 0),
                       json_or<std::string>(json, "settings_hash", ""),
                       json_or<std::string>(json, "dataset_hash", ""),
                       json_or<std::string>(json, "reason", "")};
  if (identity.set.empty() || identity.step < 0 || identity.world < 1) {
    return broken("set, step or world_size is missing");
  }
  return identity;
}

std::string to_text(const ShardHeader& header) {
  Json json = to_json(header.identity);
  json["index"] = header.index;
  json["sections"] = header.sections;
  json["state"] = header.state;
  json["parts"] = Json::array();
  for (const StoredPart& part : header.parts) {
    json["parts"].push_back(to_json(part));
  }
  return dump_json(json);
}

Result<ShardHeader> header_from(std::string_view text) {
  ACB_TRY_ASSIGN(const Json json, parse_json("checkpoint: shard header", text));
  ShardHeader header;
  ACB_TRY_ASSIGN(header.identity, identity_from(json));
  header.index = json_or<int>(json, "index", -1);
  for (const Json& name : json.value("sections", Json::array())) {
    if (name.is_string()) {
      header.sections.push_back(name.get<std::string>());
    }
  }
  header.state = json.value("state", Json::object());
  for (const Json& part : json.value("parts", Json::array())) {
    ACB_TRY_ASSIGN(StoredPart stored, part_from(part));
    header.parts.push_back(std::move(stored));
  }
  return header;
}

ShardPlan plan_shard(const SetIdentity& identity, int index, std::span<const Section> sections) {
  ShardPlan plan;
  ShardHeader header{identity, index, {}, Json::object(), {}};
  std::size_t at = 0;
  for (const Section& section : sections) {
    header.sections.push_back(section.name);
    if (index == 0 && section.save) {
      header.state[section.name] = section.save();
    }
    for (const TensorPart& part : section.parts) {
      header.parts.push_back({section.name, part.tensor, part.shape, part.type, part.box, at});
      plan.sources.push_back(part.data);
      at = aligned(at + header.parts.back().bytes());
    }
  }
  plan.header = to_text(header);
  plan.sections = std::move(header.sections);
  plan.parts = std::move(header.parts);
  plan.bytes = aligned(kPrefix + plan.header.size()) + at;
  return plan;
}

void write_shard(const ShardPlan& plan, std::span<std::byte> into) {
  const std::size_t head = aligned(kPrefix + plan.header.size());
  const std::uint32_t version[2] = {kShardFormat, 0};
  const std::uint64_t length = plan.header.size();
  std::memset(into.data(), 0, head);
  std::memcpy(into.data(), kMagic.data(), kMagic.size());
  std::memcpy(into.data() + 8, version, sizeof(version));
  std::memcpy(into.data() + 16, &length, sizeof(length));
  std::memcpy(into.data() + kPrefix, plan.header.data(), plan.header.size());
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const std::size_t begin = head + plan.parts[i].at;
    const std::size_t bytes = plan.parts[i].bytes();
    std::memcpy(into.data() + begin, plan.sources[i], bytes);
    std::memset(into.data() + begin + bytes, 0, aligned(bytes) - bytes);
  }
}

Result<std::size_t> head_size(std::span<const std::byte> prefix) {
  if (prefix.size() < kPrefix || std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0) {
    return broken("it does not begin with " + std::string(kMagic));
  }
  const auto version = number_at<std::uint32_t>(prefix, 8);
  if (version != kShardFormat) {
    return broken("format " + std::to_string(version) + ", this program reads " +
                  std::to_string(kShardFormat));
  }
  const auto length = number_at<std::uint64_t>(prefix, 16);
  if (length > (std::uint64_t{1} << 32)) {
    return broken("a header of " + std::to_string(length) + " bytes");
  }
  return aligned(kPrefix + length);
}

Result<ShardHeader> parse_shard(std::span<const std::byte> bytes, std::size_t total) {
  ACB_TRY_ASSIGN(const std::size_t head, head_size(bytes));
  const auto length = number_at<std::uint64_t>(bytes, 16);
  if (bytes.size() < kPrefix + length || bytes.size() < head) {
    return broken("it ends within its header");
  }
  ACB_TRY_ASSIGN(ShardHeader header,
                 header_from({reinterpret_cast<const char*>(bytes.data()) + kPrefix, length}));
  for (const StoredPart& part : header.parts) {
    if (part.at > total || head + part.at > total || part.bytes() > total - head - part.at) {
      return broken("it ends within " + part.section + "/" + part.tensor);
    }
  }
  return header;
}

std::string find_non_finite(const ShardPlan& plan) {
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const StoredPart& part = plan.parts[i];
    if (!all_finite(part.type, {plan.sources[i], part.bytes()})) {
      return part.section + "/" + part.tensor;
    }
  }
  return {};
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace acb::train

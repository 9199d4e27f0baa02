// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/load.h"

#include "base/text.h"
#include "mpi_runtime/checkpoint/boxes.h"
#include "mpi_runtime/checkpoint/memory.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace acb::train {

namespace {

// The cheapest first, where two levels hold the same step.
constexpr std::array<std::string_view, 4> kLevels = {"memory", "local", "shared", "folder"};

bool read_by_its_finder(std::string_view level) {
  return level == "memory" || level == "local";
}

Json to_json(const Offer& offer) {
  Json shards = Json::array();
  for (const StoredShard& shard : offer.shards) {
    shards.push_back({shard.index, shard.bytes, shard.xxh3});
  }
  return {{"level", offer.level},
          {"set", offer.set},
          {"step", offer.step},
          {"world", offer.world},
          {"place", offer.place.string()},
          {"shards", shards},
          {"fault", offer.fault}};
}

// What to_json wrote in another rank of the same program.
Offer offer_from(const Json& json) {
  Offer offer{json_or<std::string>(json, "level", ""),
              json_or<std::string>(json, "set", ""),
              json_or<std::int64_t>(json, "step", 0),
              json_or<int>(json, "world", 1),
              json_or<std::string>(json, "place", ""),
              {},
              json_or<std::string>(json, "fault", "")};
  for (const Json& shard : json.value("shards", Json::array())) {
    offer.shards.push_back(
        {shard[0].get<int>(), shard[1].get<std::uint64_t>(), shard[2].get<std::uint64_t>()});
  }
  return offer;
}

Result<std::vector<std::byte>> read_from_memory(const std::filesystem::path& file,
                                                std::uint64_t xxh3) {
  ACB_TRY_ASSIGN(const MemoryShard shard, MemoryShard::open(file));
  for (const MemoryCopy& copy : shard.sound_copies()) {
    if (checksum(copy.bytes) == xxh3) {
      return std::vector<std::byte>(copy.bytes.begin(), copy.bytes.end());
    }
  }
  return fail(ErrorCode::corrupt, "checkpoint: " + file.string() + ": it has changed since");
}

using PartKey = std::pair<std::string, std::string>;
using PartIndex = std::multimap<PartKey, const StoredPart*>;

PartIndex index_of(const ShardHeader& header) {
  PartIndex index;
  for (const StoredPart& part : header.parts) {
    index.emplace(PartKey{part.section, part.tensor}, &part);
  }
  return index;
}

using Visit =
    std::function<void(const StoredPart& from, const StoredPart& to, std::span<const Overlap>)>;

// Every piece that goes from a stored shard to a rank, in an order that both ends know.
void for_each_piece(const ShardHeader& stored, const PartIndex& wanted, const Visit& visit) {
  for (const StoredPart& from : stored.parts) {
    const auto [first, last] = wanted.equal_range({from.section, from.tensor});
    for (auto to = first; to != last; ++to) {
      const auto shared =
          overlaps(runs_of(from.shape, from.box), runs_of(to->second->shape, to->second->box));
      if (!shared.empty()) {
        visit(from, *to->second, shared);
      }
    }
  }
}

std::size_t bytes_between(const std::vector<ShardHeader>& stored, const PartIndex& wanted) {
  std::size_t bytes = 0;
  for (const ShardHeader& header : stored) {
    for_each_piece(header, wanted, [&](const StoredPart& from, const StoredPart&, auto shared) {
      for (const Overlap& piece : shared) {
        bytes += static_cast<std::size_t>(piece.count) * size_of(from.type);
      }
    });
  }
  return bytes;
}

Status check_parts(const ShardHeader& stored, const PartIndex& known) {
  for (const StoredPart& part : stored.parts) {
    const auto found = known.find({part.section, part.tensor});
    const std::string name = "checkpoint: tensor " + part.section + "/" + part.tensor;
    if (found == known.end()) {
      return fail(ErrorCode::invalid, name + " in it is unknown to this program");
    }
    if (found->second->shape != part.shape || found->second->type != part.type) {
      return fail(ErrorCode::invalid, name + " has another shape or type in it");
    }
  }
  return {};
}

std::string difference(const std::vector<std::string>& all, const std::set<std::string>& known) {
  for (const std::string& name : all) {
    if (!known.contains(name)) {
      return name;
    }
  }
  return {};
}

}  // namespace

std::vector<Offer> memory_offers(const std::filesystem::path& folder) {
  std::vector<Offer> offers;
  for (const auto& file : memory_files(folder)) {
    const auto shard = MemoryShard::open(file);
    if (!shard) {
      continue;
    }
    for (const MemoryCopy& copy : shard->sound_copies()) {
      if (const auto header = parse_shard(copy.bytes, copy.bytes.size())) {
        const SetIdentity& id = header->identity;
        offers.push_back({"memory",
                          id.set,
                          id.step,
                          id.world,
                          file,
                          {{header->index, copy.bytes.size(), checksum(copy.bytes)}}});
      }
    }
  }
  return offers;
}

std::vector<Offer> disk_offers(const std::filesystem::path& level, std::string_view name) {
  std::vector<Offer> offers;
  std::vector<std::string> faults;
  for (const SetFolder& set : list_sets(level, faults)) {
    const SetIdentity& id = set.manifest.identity;
    offers.push_back({std::string(name), id.set, id.step, id.world, set.path, set.manifest.shards});
  }
  for (const std::string& fault : faults) {
    offers.push_back({.level = std::string(name), .fault = fault});
  }
  return offers;
}

Result<Loader::Found> Loader::agree_on_candidates(const std::vector<Offer>& mine) {
  Json json = Json::array();
  for (const Offer& offer : mine) {
    json.push_back(to_json(offer));
  }
  ACB_TRY_ASSIGN(const std::vector<std::string> texts, gather_texts(comm_, dump_json(json)));
  std::map<std::tuple<std::int64_t, std::size_t, std::string>, std::map<int, Source>> found;
  std::map<std::string, int> worlds;
  Found result;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    ACB_TRY_ASSIGN(const Json offers,
                   parse_json("checkpoint: offers", texts[static_cast<std::size_t>(rank)]));
    for (const Json& item : offers) {
      const Offer offer = offer_from(item);
      if (!offer.fault.empty()) {
        result.faults.push_back(offer.fault);
        continue;
      }
      const auto level = std::find(kLevels.begin(), kLevels.end(), offer.level) - kLevels.begin();
      auto& shards = found[{-offer.step, static_cast<std::size_t>(level), offer.set}];
      worlds[offer.set] = offer.world;
      for (const StoredShard& shard : offer.shards) {
        const int reader = read_by_its_finder(offer.level) ? rank : shard.index % comm_.size();
        shards.emplace(shard.index, Source{offer.level, offer.place, shard, reader});
      }
    }
  }
  for (const auto& [key, shards] : found) {
    const auto& [negative_step, level, set] = key;
    Candidate candidate{std::string(kLevels[level]), set, -negative_step, {}};
    const int world = worlds[set];
    for (int index = 0; index < world && shards.contains(index); ++index) {
      candidate.sources.push_back(shards.at(index));
    }
    if (candidate.sources.size() == static_cast<std::size_t>(world)) {
      result.candidates.push_back(std::move(candidate));
    }
  }
  return result;
}

Result<std::vector<Loader::ReadShard>> Loader::read_share(const Candidate& candidate) const {
  std::vector<ReadShard> read;
  for (const Source& source : candidate.sources) {
    if (source.rank != comm_.rank()) {
      continue;
    }
    ReadShard shard;
    if (source.level == "memory") {
      ACB_TRY_ASSIGN(shard.bytes, read_from_memory(source.place, source.shard.xxh3));
    } else {
      ACB_TRY_ASSIGN(shard.bytes, read_shard_file(source.place, source.shard));
    }
    ACB_TRY_ASSIGN(shard.header, parse_shard(shard.bytes, shard.bytes.size()));
    const SetIdentity& id = shard.header.identity;
    if (id.set != candidate.set || id.step != candidate.step ||
        shard.header.index != source.shard.index) {
      return fail(ErrorCode::corrupt,
                  "checkpoint: " + source.place.string() + ": shard " +
                      std::to_string(source.shard.index) + " is of another set");
    }
    read.push_back(std::move(shard));
  }
  return read;
}

ShardHeader Loader::wanted_here() const {
  ShardHeader wanted;
  wanted.identity = {"wanted", 0, comm_.size(), "", "", ""};
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    wanted.sections.push_back(sections_[i].name);
    for (std::size_t j = 0; j < sections_[i].parts.size(); ++j) {
      const TensorPart& part = sections_[i].parts[j];
      wanted.parts.push_back({sections_[i].name, part.tensor, part.shape, part.type, part.box, j});
    }
  }
  return wanted;
}

Result<Loader::Picture> Loader::share_headers(const std::vector<ReadShard>& read) {
  Json json = Json::array({to_text(wanted_here())});
  for (const ReadShard& shard : read) {
    json.push_back(to_text(shard.header));
  }
  ACB_TRY_ASSIGN(const std::vector<std::string> texts, gather_texts(comm_, dump_json(json)));
  Picture picture;
  for (const std::string& text : texts) {
    ACB_TRY_ASSIGN(const Json headers, parse_json("checkpoint: headers", text));
    picture.stored.emplace_back();
    for (std::size_t i = 0; i < headers.size(); ++i) {
      ACB_TRY_ASSIGN(ShardHeader header, header_from(headers[i].get<std::string>()));
      (i == 0 ? picture.wanted : picture.stored.back()).push_back(std::move(header));
    }
  }
  return picture;
}

Status Loader::check_sections(const ShardHeader& header) const {
  const SetIdentity& id = header.identity;
  const auto differs = [&](std::string_view what,
                           const std::string& saved,
                           const std::string& now) {
    return fail(ErrorCode::invalid,
                fmt::format("checkpoint: {}: its {} hash is {}, this run's is {}: start the run in "
                            "a folder of its own, or as it was",
                            id.set,
                            what,
                            saved,
                            now));
  };
  if (id.settings_hash != config_.settings_hash) {
    return differs("settings", id.settings_hash, config_.settings_hash);
  }
  if (id.dataset_hash != config_.dataset_hash) {
    return differs("dataset", id.dataset_hash, config_.dataset_hash);
  }
  std::vector<std::string> registered;
  for (const Section& section : sections_) {
    registered.push_back(section.name);
  }
  const std::set<std::string> saved(header.sections.begin(), header.sections.end());
  if (const auto name = difference(registered, saved); !name.empty()) {
    return fail(ErrorCode::invalid,
                "checkpoint: " + id.set + ": section '" + name + "' is missing in it");
  }
  if (const auto name = difference(header.sections, {registered.begin(), registered.end()});
      !name.empty()) {
    return fail(
        ErrorCode::invalid,
        "checkpoint: " + id.set + ": section '" + name + "' in it is unknown to this program");
  }
  return {};
}

/// Names the settings that differ; shard 0 holds them.
Status Loader::check_settings(const Picture& picture) const {
  for (const auto& shards : picture.stored) {
    for (const ShardHeader& stored : shards) {
      if (stored.index != 0 || stored.identity.settings_hash == config_.settings_hash ||
          !stored.state.contains(kSettingsSection)) {
        continue;
      }
      const Json& then = stored.state[kSettingsSection];
      std::vector<std::string> changed;
      for (const auto& [key, now] : config_.settings.items()) {
        const auto value = json_or<std::string>(then, key, "unset");
        if (value != now.get<std::string>()) {
          changed.push_back(fmt::format("{} was {}, is {}", key, value, now.get<std::string>()));
        }
      }
      if (!changed.empty()) {
        return fail(ErrorCode::invalid,
                    fmt::format("checkpoint: {}: other settings: {}: start the run in a folder of "
                                "its own, or with the settings it had",
                                stored.identity.set,
                                join(changed, "; ")));
      }
    }
  }
  return {};
}

Status Loader::check_coverage(const Picture& picture) const {
  const ShardHeader& wanted = picture.wanted[static_cast<std::size_t>(comm_.rank())];
  const PartIndex index = index_of(wanted);
  std::map<const StoredPart*, std::vector<Overlap>> pieces;
  for (const auto& shards : picture.stored) {
    for (const ShardHeader& stored : shards) {
      for_each_piece(stored,
                     index,
                     [&](const StoredPart&, const StoredPart& to, std::span<const Overlap> shared) {
                       auto& list = pieces[&to];
                       list.insert(list.end(), shared.begin(), shared.end());
                     });
    }
  }
  for (const StoredPart& part : wanted.parts) {
    if (covered(std::move(pieces[&part])) != elements_of(part.box.extent)) {
      return fail(ErrorCode::invalid,
                  "checkpoint: tensor " + part.section + "/" + part.tensor +
                      " is not, or not whole, in it");
    }
  }
  return {};
}

Status Loader::check(const Picture& picture) const {
  PartIndex known;
  for (const ShardHeader& wanted : picture.wanted) {
    known.merge(index_of(wanted));
  }
  ACB_TRY(check_settings(picture));
  for (const auto& shards : picture.stored) {
    for (const ShardHeader& stored : shards) {
      ACB_TRY(check_sections(stored));
      ACB_TRY(check_parts(stored, known));
    }
  }
  return check_coverage(picture);
}

std::vector<std::byte> Loader::pack(const std::vector<ReadShard>& read, const ShardHeader& wanted) {
  std::vector<std::byte> out;
  const PartIndex index = index_of(wanted);
  for (const ReadShard& shard : read) {
    // parse_shard has taken the head's size from the same bytes.
    const std::size_t head = head_size(shard.bytes).value_or(0);
    for_each_piece(shard.header, index, [&](const StoredPart& from, const auto&, auto shared) {
      for (const Overlap& piece : shared) {
        const std::byte* at = shard.bytes.data() + head + from.at +
                              static_cast<std::size_t>(piece.from) * size_of(from.type);
        out.insert(out.end(), at, at + static_cast<std::size_t>(piece.count) * size_of(from.type));
      }
    });
  }
  return out;
}

// The live elements of a wanted part, whose `at` is its number within its section.
std::byte* Loader::live(const StoredPart& wanted) const {
  const auto section =
      std::find_if(sections_.begin(), sections_.end(), [&](const Section& candidate) {
        return candidate.name == wanted.section;
      });
  return section->parts[wanted.at].data;
}

void Loader::unpack(const std::vector<ShardHeader>& stored,
                    const ShardHeader& wanted,
                    const std::byte* at) const {
  const PartIndex index = index_of(wanted);
  for (const ShardHeader& header : stored) {
    for_each_piece(header, index, [&](const StoredPart&, const StoredPart& to, auto shared) {
      for (const Overlap& piece : shared) {
        const std::size_t bytes = static_cast<std::size_t>(piece.count) * size_of(to.type);
        std::memcpy(live(to) + static_cast<std::size_t>(piece.to) * size_of(to.type), at, bytes);
        at += bytes;
      }
    });
  }
}

Status Loader::move_elements(const Picture& picture, const std::vector<ReadShard>& read) {
  const auto ranks = static_cast<std::size_t>(comm_.size());
  const ShardHeader& wanted = picture.wanted[static_cast<std::size_t>(comm_.rank())];
  std::vector<std::vector<std::byte>> out(ranks);
  std::vector<std::vector<std::byte>> in(ranks);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    out[peer] = pack(read, picture.wanted[peer]);
    in[peer].resize(bytes_between(picture.stored[peer], index_of(wanted)));
    sends.push_back({static_cast<int>(peer), out[peer]});
    receives.push_back({static_cast<int>(peer), in[peer]});
  }
  ACB_TRY(comm_.exchange(sends, receives));
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    unpack(picture.stored[peer], wanted, in[peer].data());
  }
  return {};
}

Status Loader::load_small_state(const Picture& picture) {
  const Json* state = nullptr;
  for (const auto& shards : picture.stored) {
    for (const ShardHeader& stored : shards) {
      state = stored.index == 0 ? &stored.state : state;
    }
  }
  if (state == nullptr) {
    return fail(ErrorCode::internal, "checkpoint: nobody has read shard 0");
  }
  for (const Section& section : sections_) {
    if (section.load) {
      ACB_TRY(section.load(state->value(section.name, Json())));
    }
  }
  return {};
}

std::string Loader::inexact_reason(const Picture& picture) {
  for (const auto& shards : picture.stored) {
    if (!shards.empty()) {
      return shards.front().identity.inexact_reason;
    }
  }
  return {};
}

Result<std::optional<Loaded>> Loader::load(const std::vector<Offer>& mine) {
  ACB_TRY_ASSIGN(Found found, agree_on_candidates(mine));
  const auto pass_over = [&](const std::string& fault) {
    if (comm_.rank() == 0) {
      spdlog::warn("{}: passed over", fault);
    }
  };
  std::for_each(found.faults.begin(), found.faults.end(), pass_over);
  for (const Candidate& candidate : found.candidates) {
    auto read = read_share(candidate);
    ACB_TRY_ASSIGN(const Status readable,
                   agree(comm_, read ? Status() : Status(tl::unexpected<Error>(read.error()))));
    if (!readable) {
      found.faults.push_back(fmt::format(
          "{}: step {} ({})", readable.error().message, candidate.step, candidate.level));
      pass_over(found.faults.back());
      continue;
    }
    ACB_TRY_ASSIGN(const Picture picture, share_headers(*read));
    ACB_TRY_ASSIGN(const Status fits, agree(comm_, check(picture)));
    ACB_TRY(fits);
    ACB_TRY(move_elements(picture, *read));
    ACB_TRY_ASSIGN(const Status taken, agree(comm_, load_small_state(picture)));
    ACB_TRY(taken);
    return Loaded{candidate.step, candidate.level, candidate.set, inexact_reason(picture)};
  }
  // To start over in silence would throw away what those sets hold.
  if (!found.faults.empty()) {
    return fail(ErrorCode::corrupt,
                "checkpoint: what was saved cannot be read: " + join(found.faults, "; ") +
                    ": mend it, or move it away to start anew");
  }
  return std::nullopt;
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
// autocloud-ckpt: look at checkpoints, check them, hash them.
#include "base/text.h"
#include "mpi_runtime/checkpoint/inspect.h"

#include <CLI/CLI.hpp>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

namespace {

using acb::Json;
using acb::train::SetFolder;

std::uint64_t bytes_of(const SetFolder& set) {
  std::uint64_t bytes = 0;
  for (const auto& shard : set.manifest.shards) {
    bytes += shard.bytes;
  }
  return bytes;
}

Json to_json(const SetFolder& set) {
  Json json = acb::train::to_json(set.manifest.identity);
  json["path"] = set.path.string();
  json["level"] = set.manifest.level;
  json["sections"] = set.manifest.sections;
  json["shards"] = set.manifest.shards.size();
  json["bytes"] = bytes_of(set);
  return json;
}

void print(const Json& json) {
  std::printf("%s\n", acb::dump_json(json, 2).c_str());
}

int tell(const acb::Error& error) {
  std::fprintf(stderr, "autocloud-ckpt: %s\n", error.message.c_str());
  return 1;
}

int list(const std::string& path, bool as_json) {
  std::vector<SetFolder> sets = acb::train::list_sets(path);
  if (sets.empty()) {
    auto one = acb::train::find_set(path);
    if (!one) {
      return tell(one.error());
    }
    sets.push_back(std::move(*one));
  }
  Json all = Json::array();
  for (const SetFolder& set : sets) {
    all.push_back(to_json(set));
  }
  if (as_json) {
    print(all);
    return 0;
  }
  std::printf(
      "%10s  %-7s  %6s  %14s  %-24s  %s\n", "STEP", "LEVEL", "SHARDS", "BYTES", "EXACT", "PATH");
  for (const SetFolder& set : sets) {
    const auto& id = set.manifest.identity;
    const std::string exact = id.inexact_reason.empty() ? "yes" : "no (" + id.inexact_reason + ")";
    std::printf("%10lld  %-7s  %2zu/%-3d  %14llu  %-24s  %s\n",
                static_cast<long long>(id.step),
                set.manifest.level.c_str(),
                set.manifest.shards.size(),
                id.world,
                static_cast<unsigned long long>(bytes_of(set)),
                exact.c_str(),
                set.path.c_str());
  }
  return 0;
}

int verify(const std::string& path, bool as_json) {
  const auto set = acb::train::find_set(path);
  if (!set) {
    return tell(set.error());
  }
  const auto sound = acb::train::verify_set(*set);
  if (as_json) {
    Json json = to_json(*set);
    json["sound"] = sound.has_value();
    json["fault"] = sound ? Json() : Json(sound.error().message);
    print(json);
  } else if (sound) {
    std::printf("%s: step %lld is sound\n",
                set->path.c_str(),
                static_cast<long long>(set->manifest.identity.step));
  }
  return sound ? 0 : tell(sound.error());
}

int hash(const std::string& path, const std::string& section, bool as_json) {
  const auto set = acb::train::find_set(path);
  if (!set) {
    return tell(set.error());
  }
  const auto sha256 = acb::train::section_sha256(*set, section);
  if (!sha256) {
    return tell(sha256.error());
  }
  if (as_json) {
    Json json = to_json(*set);
    json["section"] = section;
    json["sha256"] = *sha256;
    print(json);
  } else {
    std::printf("%s\n", sha256->c_str());
  }
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Looks at checkpoints, checks them, hashes them.\n\n"
      "PATH is a set, or a folder of sets, of which the newest is meant.\n\n"
      "Examples:\n"
      "  autocloud-ckpt list run/checkpoints\n"
      "  autocloud-ckpt verify run/final\n"
      "  autocloud-ckpt hash run/final"};
  app.require_subcommand(1);
  std::string path;
  std::string section = "weights";
  bool as_json = false;
  int exit_code = 0;
  const auto add = [&](const char* name, const char* help) {
    CLI::App* command = app.add_subcommand(name, help);
    command->add_option("path", path, "a set, or a folder of sets")->required();
    command->add_flag("--json", as_json, "print JSON");
    return command;
  };
  add("list", "list the committed sets, newest first")->callback([&] {
    exit_code = list(path, as_json);
  });
  add("verify", "read every byte: checksums, and whether all tensors are whole")->callback([&] {
    exit_code = verify(path, as_json);
  });
  CLI::App* hash_command = add("hash", "SHA-256 of a section's tensors, however many ranks saved");
  hash_command->add_option("--section", section, "which section")->capture_default_str();
  hash_command->callback([&] { exit_code = hash(path, section, as_json); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    spdlog::set_default_logger(spdlog::stderr_color_mt("autocloud-ckpt"));
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "autocloud-ckpt: %s\n", error.what());
    return 1;
  }
}

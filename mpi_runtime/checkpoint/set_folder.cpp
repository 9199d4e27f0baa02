// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/set_folder.h"

#include "base/files.h"
#include "base/text.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace acb::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kManifest = "manifest.json";
constexpr std::string_view kFolderPrefix = "step-";

std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::uint64_t from_hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? value : 0;
}

std::uint64_t text_checksum(std::string_view text) {
  return checksum(std::as_bytes(std::span(text)));
}

Result<std::vector<std::byte>> read_whole(const fs::path& path, std::uint64_t expected) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return fail_errno("checkpoint: " + path.string());
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return fail_errno("checkpoint: " + path.string());
  }
  if (static_cast<std::uint64_t>(status.st_size) != expected) {
    return fail(ErrorCode::corrupt,
                fmt::format("checkpoint: {}: {} bytes, its manifest says {}",
                            path.string(),
                            status.st_size,
                            expected));
  }
  std::vector<std::byte> bytes(expected);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno != EINTR) {
      return fail_errno("checkpoint: reading " + path.string());
    }
    if (got == 0) {
      return fail(ErrorCode::corrupt, "checkpoint: " + path.string() + ": it has become shorter");
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return bytes;
}

Status fill_file(const fs::path& path, const UniqueFd& fd, std::span<const std::byte> bytes) {
  // Space is claimed before anything is written: a full disk shows at once and costs nothing.
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes.size()));
      error != 0 && error != EOPNOTSUPP && error != EINVAL) {
    errno = error;
    return fail_errno("checkpoint: room for " + path.string());
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto written = write_all(fd.get(), text); !written) {
    return fail_with("checkpoint: " + path.string(), written.error());
  }
  if (::fsync(fd.get()) != 0) {
    return fail_errno("checkpoint: fsync of " + path.string());
  }
  // What is read back below comes from the disk where the kernel can drop its cache.
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

// The newest change in a folder, its own included.
fs::file_time_type last_change(const fs::path& folder, std::error_code& error) {
  fs::file_time_type newest = fs::last_write_time(folder, error);
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    newest = std::max(newest, fs::last_write_time(entry->path(), error));
  }
  return newest;
}

}  // namespace

std::string folder_name(const SetIdentity& identity) {
  return fmt::format("{}{:010}-{}", kFolderPrefix, identity.step, identity.set);
}

fs::path shard_path(const fs::path& set, int index) {
  return set / fmt::format("shard-{:05}", index);
}

Result<StoredShard> write_shard_file(const fs::path& folder,
                                     int index,
                                     std::span<const std::byte> bytes) {
  ACB_TRY(make_folders(folder));
  const fs::path path = shard_path(folder, index);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) {
    return fail_errno("checkpoint: " + path.string());
  }
  const StoredShard shard{index, bytes.size(), checksum(bytes)};
  auto done = fill_file(path, fd, bytes);
  if (done) {
    done = read_shard_file(folder, shard).map([](const auto&) {});
  }
  if (done) {
    done = sync_folder(folder);
  }
  if (!done) {
    ::unlink(path.c_str());
    return tl::unexpected<Error>(done.error());
  }
  return shard;
}

Result<std::vector<std::byte>> read_shard_file(const fs::path& folder, const StoredShard& shard) {
  const fs::path path = shard_path(folder, shard.index);
  ACB_TRY_ASSIGN(std::vector<std::byte> bytes, read_whole(path, shard.bytes));
  if (checksum(bytes) != shard.xxh3) {
    return fail(ErrorCode::corrupt,
                "checkpoint: " + path.string() + ": its checksum is not that of its manifest");
  }
  return bytes;
}

void remove_shard_file(const fs::path& folder, int index) {
  ::unlink(shard_path(folder, index).c_str());
  ::rmdir(folder.c_str());  // the last of the ranks empties it
}

Status write_manifest(const fs::path& folder, const Manifest& manifest) {
  Json json = to_json(manifest.identity);
  json["level"] = manifest.level;
  json["sections"] = manifest.sections;
  json["shards"] = Json::array();
  for (const StoredShard& shard : manifest.shards) {
    json["shards"].push_back(
        {{"index", shard.index}, {"bytes", shard.bytes}, {"xxh3", hex(shard.xxh3)}});
  }
  for (const StoredShard& shard : manifest.shards) {
    std::error_code error;
    const fs::path path = shard_path(folder, shard.index);
    if (fs::file_size(path, error) != shard.bytes || error) {
      return fail(
          ErrorCode::corrupt,
          fmt::format("checkpoint: {}: {}, though rank {} has written it: is the folder the "
                      "same on all nodes?",
                      path.string(),
                      error ? error.message() : "of another size",
                      shard.index));
    }
  }
  const std::string line = dump_json(json);
  ACB_TRY(write_file(folder / kManifest, line + "\n" + hex(text_checksum(line)) + "\n"));
  return sync_folder(folder.parent_path());
}

Result<Manifest> read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  ACB_TRY_ASSIGN(const std::string text, read_file(path));
  const std::size_t line_end = text.find('\n');
  const std::string_view line = std::string_view(text).substr(0, line_end);
  if (line_end == std::string::npos ||
      text.substr(line_end) != "\n" + hex(text_checksum(line)) + "\n") {
    return fail(ErrorCode::corrupt, "checkpoint: " + path.string() + ": its checksum is wrong");
  }
  ACB_TRY_ASSIGN(const Json json, parse_json(path.string(), line));
  Manifest manifest;
  ACB_TRY_ASSIGN(manifest.identity, identity_from(json));
  manifest.level = json_or<std::string>(json, "level", "");
  for (const Json& name : json.value("sections", Json::array())) {
    manifest.sections.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  for (const Json& shard : json.value("shards", Json::array())) {
    manifest.shards.push_back({json_or<int>(shard, "index", -1),
                               json_or<std::uint64_t>(shard, "bytes", 0),
                               from_hex(json_or<std::string>(shard, "xxh3", ""))});
  }
  return manifest;
}

std::vector<SetFolder> list_sets(const fs::path& level) {
  std::vector<std::string> faults;
  auto sets = list_sets(level, faults);
  for (const std::string& fault : faults) {
    spdlog::warn("{}: this set is passed over", fault);
  }
  return sets;
}

std::vector<SetFolder> list_sets(const fs::path& level, std::vector<std::string>& faults) {
  std::vector<SetFolder> sets;
  std::error_code error;
  for (fs::directory_iterator entry(level, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kFolderPrefix)) {
      continue;
    }
    auto manifest = read_manifest(entry->path());
    if (manifest) {
      sets.push_back({entry->path(), std::move(*manifest)});
    } else if (manifest.error().code != ErrorCode::not_found) {
      faults.push_back(manifest.error().message);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    faults.push_back("checkpoint: " + level.string() + ": " + error.message());
  }
  std::sort(sets.begin(), sets.end(), [](const SetFolder& a, const SetFolder& b) {
    return std::pair(b.manifest.identity.step, b.path) <
           std::pair(a.manifest.identity.step, a.path);
  });
  return sets;
}

Status remove_set(const fs::path& folder) {
  if (::unlink((folder / kManifest).c_str()) != 0 && errno != ENOENT) {
    return fail_errno("checkpoint: removing " + folder.string());
  }
  ACB_TRY(sync_folder(folder));
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) {
    return fail(ErrorCode::unavailable,
                "checkpoint: removing " + folder.string() + ": " + error.message());
  }
  return {};
}

void sweep_leftovers(const fs::path& level, std::chrono::seconds age) {
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator entry(level, error), end; !error && entry != end;
       entry.increment(error)) {
    const bool is_set = entry->path().filename().string().starts_with(kFolderPrefix);
    std::error_code stat_error;
    if (is_set && !fs::exists(entry->path() / kManifest, stat_error) && !stat_error &&
        now - last_change(entry->path(), stat_error) > age && !stat_error) {
      leftovers.push_back(entry->path());
    }
  }
  for (const fs::path& path : leftovers) {
    spdlog::info("checkpoint: removing {}, left half-written by an earlier start", path.string());
    fs::remove_all(path, error);
  }
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/inbox.h"

#include "base/files.h"
#include "base/json.h"
#include "cloudburst/slurm/hostlist.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>

namespace acb::cloud {

namespace {

constexpr std::size_t kOrderLimit = std::size_t{16} << 20;

Result<HookOrder> read_order(const std::filesystem::path& path) {
  ACB_TRY_ASSIGN(const std::string text, read_file(path, kOrderLimit));
  ACB_TRY_ASSIGN(const Json json, parse_json("order", text));
  HookOrder order;
  order.name = path.filename().string();
  order.kind = json_or<std::string>(json, "kind", "");
  if (order.kind != "resume" && order.kind != "suspend" && order.kind != "resumefail") {
    return fail(ErrorCode::invalid,
                "kind '" + order.kind + "': must be resume, suspend or resumefail");
  }
  ACB_TRY_ASSIGN(order.hosts, expand_hosts(json_or<std::string>(json, "hosts", "")));
  ACB_TRY_ASSIGN(order.at, parse_time("at", json_or<std::string>(json, "at", "")));
  return order;
}

}  // namespace

Result<Inbox> read_orders(const std::filesystem::path& inbox) {
  Inbox found;
  std::error_code error;
  std::filesystem::directory_iterator entries(inbox, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path path = entries->path();
    if (path.extension() != ".json") {
      continue;
    }
    auto order = read_order(path);
    if (order) {
      found.orders.push_back(std::move(*order));
    } else if (order.error().code == ErrorCode::invalid ||
               order.error().code == ErrorCode::corrupt) {
      spdlog::error("inbox: {}: {}; moved aside", path.string(), order.error().message);
      std::error_code ignored;
      std::filesystem::rename(path, path.string() + ".bad", ignored);
    } else if (order.error().code != ErrorCode::not_found) {
      // Out of descriptors, say: it is whole, and read once that has passed.
      found.unread = path.string() + ": " + order.error().message;
    }
  }
  if (error) {
    return fail(ErrorCode::unavailable, "inbox: " + inbox.string() + ": " + error.message());
  }
  std::sort(found.orders.begin(), found.orders.end(), [](const HookOrder& a, const HookOrder& b) {
    return a.name < b.name;
  });
  return found;
}

Status remove_orders(const std::filesystem::path& inbox, const std::vector<HookOrder>& orders) {
  for (const HookOrder& order : orders) {
    std::error_code error;
    std::filesystem::remove(inbox / order.name, error);
    if (error) {
      return fail(ErrorCode::denied,
                  "inbox: removing " + (inbox / order.name).string() + ": " + error.message());
    }
  }
  return {};
}

}  // namespace acb::cloud

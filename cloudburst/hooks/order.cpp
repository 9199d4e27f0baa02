// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/hooks/order.h"

#include "base/files.h"
#include "base/json.h"
#include "cloudburst/slurm/hostlist.h"

#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <unordered_set>

namespace acb::cloud {

std::string order_text(const Order& order) {
  return dump_json({{"kind", order.kind}, {"hosts", order.hosts}, {"at", format_time(order.at)}}) +
         "\n";
}

std::string order_name(std::string_view kind, pid_t pid) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto nanoseconds = static_cast<long long>(now.tv_sec) * 1'000'000'000LL + now.tv_nsec;
  return std::to_string(nanoseconds) + "-" + std::to_string(pid) + "-" + std::string(kind) +
         ".json";
}

Status write_order(const std::filesystem::path& inbox, const Order& order) {
  const std::filesystem::path path = inbox / order_name(order.kind, ::getpid());
  const std::string text = order_text(order);
  auto written = write_file(path, text, 0600);
  if (!written && written.error().code == ErrorCode::not_found) {
    ACB_TRY(make_folders(inbox));
    if (::chmod(inbox.c_str(), 0700) != 0) {
      return fail_errno(inbox.string());
    }
    written = write_file(path, text, 0600);
  }
  return written;
}

Result<HostShares> share_hosts(const std::string& hosts, const std::string& our_nodes) {
  ACB_TRY_ASSIGN(const std::vector<std::string> all, expand_hosts(hosts));
  ACB_TRY_ASSIGN(const std::vector<std::string> mine, expand_hosts(our_nodes));
  const std::unordered_set<std::string> known(mine.begin(), mine.end());
  std::vector<std::string> ours;
  std::vector<std::string> others;
  for (const std::string& host : all) {
    (known.contains(host) ? ours : others).push_back(host);
  }
  return HostShares{compress_hosts(ours), compress_hosts(others)};
}

}  // namespace acb::cloud

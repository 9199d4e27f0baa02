// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/slurm/hostlist.h"

#include <slurm/slurm.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace acb::cloud {

namespace {

constexpr int kMostHosts = 65536;

struct Destroy {
  void operator()(hostlist* list) const { slurm_hostlist_destroy(list); }
};
using HostList = std::unique_ptr<hostlist, Destroy>;

struct Free {
  void operator()(char* text) const { std::free(text); }
};

}  // namespace

Result<std::vector<std::string>> expand_hosts(const std::string& text) {
  std::vector<std::string> hosts;
  if (text.empty()) {
    return hosts;
  }
  const auto refuse = [&] {
    return fail(ErrorCode::invalid, "host list: '" + text + "': not a list such as burst-[0-3]");
  };
  const HostList list(slurm_hostlist_create(text.c_str()));
  if (!list || slurm_hostlist_count(list.get()) > kMostHosts) {
    return refuse();
  }
  while (const std::unique_ptr<char, Free> name{slurm_hostlist_shift(list.get())}) {
    // libslurm takes "burst-[0-" for a host of that name.
    if (std::strpbrk(name.get(), "[]") != nullptr) {
      return refuse();
    }
    hosts.emplace_back(name.get());
  }
  return hosts;
}

std::string compress_hosts(const std::vector<std::string>& hosts) {
  if (hosts.empty()) {
    return {};
  }
  const HostList list(slurm_hostlist_create(nullptr));
  for (const std::string& host : hosts) {
    slurm_hostlist_push_host(list.get(), host.c_str());
  }
  slurm_hostlist_uniq(list.get());
  char* text = slurm_hostlist_ranged_string_malloc(list.get());
  const std::unique_ptr<char, Free> owned(text);
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace acb::cloud

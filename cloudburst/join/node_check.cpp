// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/join/node_check.h"

#include "base/files.h"
#include "base/text.h"
#include "cloudburst/http/http.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <sstream>
#include <thread>

namespace acb::cloud {

namespace {

constexpr std::chrono::seconds kLimit{10};
constexpr std::chrono::seconds kAgain{1};
constexpr const char* kSlurmctldPort = "6817";

CheckResult check_clock(const CheckOptions& options) {
  CheckResult result{
      "clock", false, {}, fmt::format("within {} s of the controller", options.most_skew.count())};
  HttpRequest request;
  request.url = options.url + "/v1/time";
  request.ca_file = options.ca_file.string();
  request.verify_name = false;
  request.limit = kLimit;
  const WallTime before = wall_now();
  const auto response = http_call(request);
  const WallTime after = wall_now();
  if (!response) {
    result.found = response.error().message;
    return result;
  }
  const auto json = parse_json("time", response->body);
  const auto theirs = parse_time("time", json ? json_or<std::string>(*json, "time", "") : "");
  if (!theirs) {
    result.found = options.url + " tells no time";
    return result;
  }
  // The answer was made at some moment between the two readings.
  const auto ours = before + (after - before) / 2;
  const double skew = std::chrono::duration<double>(ours - *theirs).count();
  result.ok = skew < static_cast<double>(options.most_skew.count()) &&
              -skew < static_cast<double>(options.most_skew.count());
  result.found = fmt::format("{:+.3f} s", skew);
  return result;
}

CheckResult check_gpus(const CheckOptions& options) {
  glob_t found{};
  const int status = ::glob(options.gpu_devices.c_str(), 0, nullptr, &found);
  const std::size_t count = status == 0 ? found.gl_pathc : 0;
  ::globfree(&found);
  return {"gpus",
          count >= static_cast<std::size_t>(options.gpus),
          fmt::format("{} files {}", count, options.gpu_devices),
          fmt::format("at least {}", options.gpus)};
}

CheckResult check_memory(const CheckOptions& options) {
  const auto info = read_file("/proc/meminfo", 65536);
  std::istringstream words(info.value_or(""));
  std::string word;
  long long kib = 0;
  while (words >> word) {
    if (word == "MemTotal:") {
      words >> kib;
      break;
    }
  }
  return {"memory",
          kib / 1024 >= options.memory_mib,
          fmt::format("{} MiB", kib / 1024),
          fmt::format("at least {} MiB", options.memory_mib)};
}

bool connects(const addrinfo& address) {
  const UniqueFd fd(::socket(
      address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (!fd) {
    return false;
  }
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return true;
  }
  pollfd poller{fd.get(), POLLOUT, 0};
  const int limit = static_cast<int>(std::chrono::milliseconds(kLimit).count());
  if (errno != EINPROGRESS || ::poll(&poller, 1, limit) != 1) {
    return false;
  }
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

CheckResult check_controller(const CheckOptions& options) {
  CheckResult result{"controller", false, {}, options.conf_server + " accepts a connection"};
  const std::size_t colon = options.conf_server.rfind(':');
  const std::string host = options.conf_server.substr(0, colon);
  const std::string port =
      colon == std::string::npos ? kSlurmctldPort : options.conf_server.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  if (status != 0) {
    result.found = host + ": " + ::gai_strerror(status);
    return result;
  }
  for (const addrinfo* address = list; address != nullptr && !result.ok;
       address = address->ai_next) {
    result.ok = connects(*address);
  }
  result.found = result.ok ? "connected" : "no connection to " + host + " port " + port;
  return result;
}

/// A node that is switched off for a daemon's restart costs a boot, and the burst its start.
CheckResult until_ok(CheckResult (*check)(const CheckOptions&), const CheckOptions& options) {
  const auto end = std::chrono::steady_clock::now() + options.patience;
  CheckResult result = check(options);
  while (!result.ok && std::chrono::steady_clock::now() + kAgain < end) {
    std::this_thread::sleep_for(kAgain);
    result = check(options);
  }
  return result;
}

}  // namespace

std::vector<CheckResult> check_node(const CheckOptions& options) {
  std::vector<CheckResult> results;
  if (!options.url.empty()) {
    results.push_back(until_ok(check_clock, options));
  }
  if (options.gpus > 0) {
    results.push_back(check_gpus(options));
  }
  if (options.memory_mib > 0) {
    results.push_back(check_memory(options));
  }
  if (!options.conf_server.empty()) {
    results.push_back(until_ok(check_controller, options));
  }
  return results;
}

Json check_report(const std::vector<CheckResult>& results) {
  Json checks = Json::array();
  for (const CheckResult& result : results) {
    checks.push_back({{"name", result.name},
                      {"ok", result.ok},
                      {"found", result.found},
                      {"wanted", result.wanted}});
  }
  const bool ok =
      std::all_of(results.begin(), results.end(), [](const CheckResult& r) { return r.ok; });
  return {{"ok", ok}, {"checks", std::move(checks)}};
}

}  // namespace acb::cloud

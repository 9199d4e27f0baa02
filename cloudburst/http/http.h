// SPDX-License-Identifier: Apache-2.0
// One HTTP request, one call: the only place that knows libcurl. Every call has a connection of its
// own and time limits, follows no redirect, verifies the server's certificate, and logs nothing.
#pragma once

#include "base/result.h"
#include "cloudburst/http/secret.h"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace acb::cloud {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  const Secret* bearer = nullptr;  ///< sent as "Authorization: Bearer ...", over https only
  std::string ca_file = {};        ///< PEM file of the accepted authorities
  std::string ca_pem = {};         ///< PEM text of them; both empty: the system's
  /// False checks the certificate against `ca_pem` but not the name in it: for a server known by
  /// its pinned certificate and reached under whatever address it has.
  bool verify_name = true;
  std::chrono::milliseconds connect_limit{5000};
  std::chrono::milliseconds limit{30000};
  std::size_t body_limit = std::size_t{8} << 20;
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case; the last of equal ones
  std::string body;

  /// The header's value, or nothing.
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// Sends and waits for the whole answer, whatever its status. Errors: `timeout`; `denied` (the
/// certificate is not accepted); `invalid` (the request or its CA file); `corrupt` (an answer that
/// is cut short, too large, or not HTTP); `unavailable` (everything else: no such name, refused,
/// reset). Thread-safe. libcurl's copies of headers and bodies are zeroed when it frees them.
[[nodiscard]] Result<HttpResponse> http_call(const HttpRequest& request);

/// `text` with all but unreserved characters as %XX, for one part of a path or query.
[[nodiscard]] std::string url_escape(std::string_view text);

}  // namespace acb::cloud

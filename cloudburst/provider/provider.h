// SPDX-License-Identifier: Apache-2.0
// The client of the GPU cloud API (POST /v1/gpu/allocate and what belongs to it). Each call is ONE
// try, blocks for at most `Options::call_limit`, and holds no state between calls, so that any
// number of threads may call at the same time. When to try again is up to the caller (retry.h).
#pragma once

#include "base/result.h"
#include "cloudburst/http/secret.h"
#include "cloudburst/provider/errors.h"
#include "cloudburst/provider/types.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acb::cloud {

class Provider {
 public:
  struct Options {
    std::string url = "https://api.autocloud.com";  ///< https only: the key goes nowhere in clear
    std::string ca_file;                            ///< empty: the system's authorities
    std::chrono::milliseconds connect_limit{5000};
    std::chrono::milliseconds call_limit{30000};
  };
  enum class Released {
    confirmed,  ///< gone already
    accepted,   ///< under way; billed until get() says released
  };

  /// `invalid` for a URL that is not https, or a CA file that holds no certificates.
  [[nodiscard]] static Result<Provider> open(Options options, Secret key);

  /// Rents; `body` is sent as it is (allocate_body). The same key and body again return the first
  /// answer, also where that was lost.
  [[nodiscard]] CloudResult<Allocation> allocate(std::string_view body, std::string_view key) const;
  /// The one allocation made under this key, or nullopt: consistent, never late.
  [[nodiscard]] CloudResult<std::optional<Allocation>> find_by_key(std::string_view key) const;
  /// What has the tag ("key:value"), newest first: the first page, or all that were ever made.
  /// Younger than 60 s may be missing.
  enum class Pages { first, all };
  [[nodiscard]] CloudResult<std::vector<Allocation>> list(std::string_view tag, Pages pages) const;
  [[nodiscard]] CloudResult<Allocation> get(std::string_view allocation_id) const;
  /// Gives back all instances of it.
  [[nodiscard]] CloudResult<Released> release(std::string_view allocation_id) const;
  /// What can be rented now; all types for an empty one. Offers that make no sense are left out.
  [[nodiscard]] CloudResult<std::vector<Offer>> offers(std::string_view gpu_type) const;

 private:
  struct Call;
  Provider(Options options, Secret key);
  [[nodiscard]] CloudResult<Json> perform(const Call& call) const;

  Options options_;
  Secret key_;
};

/// The key from AUTO_CLOUD_API_KEY (which is wiped from the environment, and from what
/// /proc/PID/environ shows), else from `key_file`, which only its owner may be able to read. Call
/// it while the process has one thread.
[[nodiscard]] Result<Secret> load_cloud_key(const std::string& key_file);

}  // namespace acb::cloud

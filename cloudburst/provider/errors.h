// SPDX-License-Identifier: Apache-2.0
// What can go wrong with a call to the cloud, as classes: the class alone decides what is done
// next.
#pragma once

#include <tl/expected.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace acb::cloud {

enum class ErrorClass {
  throttled,    ///< too many calls: wait as told, nothing else changes
  no_capacity,  ///< this offer has none left, or costs too much now: let it rest, try the next
  quota,        ///< the account may not rent more: stop, tell a person the provider's words
  auth,         ///< the key or the certificate is not accepted: stop, tell an admin
  bad_request,  ///< the cloud refuses what we asked for: stop, tell a person
  ambiguous,  ///< no answer, 5xx, or one that makes no sense: look the key up before anything else
  conflict,   ///< the key was used before: see CloudError::allocation_id; ours only if its tags say
              ///< so
  gone,  ///< the cloud knows no such allocation. Never proof that it was released: look further
};
/// "throttled", "no_capacity", ...
[[nodiscard]] std::string_view name_of(ErrorClass cls);

struct [[nodiscard]] CloudError {
  ErrorClass cls = ErrorClass::ambiguous;
  std::string code;        ///< the provider's; ours where there was none: "timeout", "unreachable",
                           ///< "tls", "garbled", "http_502"
  std::string message;     ///< the provider's words, at most 500 bytes, never the key
  std::string request_id;  ///< empty where the provider gave none
  std::optional<std::chrono::seconds> retry_after;
  std::string allocation_id;  ///< with conflict, where told
  /// "No capacity" in a server error: its words are a guess, so the key is looked up before that is
  /// believed.
  bool unsure = false;
};

template <typename T>
using CloudResult = tl::expected<T, CloudError>;

/// "no_capacity: insufficient_capacity: no a100-80gb in eu-1 (request req-17)": for people.
[[nodiscard]] std::string describe(const CloudError& error);

/// The class and the parts of an answer whose status is not a success. The body's error code
/// decides, then words on capacity in its message (some clouds deliver that as a plain 500), then
/// the status. `request_id_header` stands in where the body names no request.
[[nodiscard]] CloudError classify(int status,
                                  std::string_view body,
                                  std::string_view retry_after_header,
                                  std::string_view request_id_header);

}  // namespace acb::cloud

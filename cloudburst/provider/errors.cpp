// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/errors.h"

#include "base/json.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace acb::cloud {

namespace {

constexpr std::size_t kLongestMessage = 500;

struct CodeRow {
  std::string_view code;
  ErrorClass cls;
};
// The error codes that the API names.
constexpr std::array kCodes{
    CodeRow{"rate_limited", ErrorClass::throttled},
    CodeRow{"insufficient_capacity", ErrorClass::no_capacity},
    CodeRow{"price_exceeded", ErrorClass::no_capacity},
    CodeRow{"quota_exceeded", ErrorClass::quota},
    CodeRow{"unauthorized", ErrorClass::auth},
    CodeRow{"forbidden", ErrorClass::auth},
    CodeRow{"invalid_argument", ErrorClass::bad_request},
    CodeRow{"not_found", ErrorClass::gone},
    CodeRow{"idempotency_mismatch", ErrorClass::conflict},
    CodeRow{"idempotency_expired", ErrorClass::conflict},
    CodeRow{"internal", ErrorClass::ambiguous},
    CodeRow{"unavailable", ErrorClass::ambiguous},
};

ErrorClass class_of_status(int status) {
  switch (status) {
    case 401:
    case 403:
      return ErrorClass::auth;
    case 404:
    case 410:
      return ErrorClass::gone;
    case 409:
      return ErrorClass::conflict;
    case 429:
      return ErrorClass::throttled;
    case 400:
    case 405:
    case 411:
    case 413:
    case 414:
    case 415:
    case 422:
      return ErrorClass::bad_request;
    default:
      return ErrorClass::ambiguous;  // 5xx, 408, redirects, and what no API sends
  }
}

bool speaks_of_capacity(std::string_view message) {
  std::string lower(message);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return lower.find("capacity") != std::string::npos;
}

ErrorClass class_of(int status, std::string_view code, std::string_view message) {
  const auto* const row = std::find_if(kCodes.begin(), kCodes.end(), [&](const CodeRow& candidate) {
    return candidate.code == code;
  });
  const bool says_little = row == kCodes.end() || row->cls == ErrorClass::ambiguous;
  if (says_little && status >= 500 && speaks_of_capacity(message)) {
    return ErrorClass::no_capacity;  // "Out of host capacity" comes as a 500 from some clouds
  }
  return row != kCodes.end() ? row->cls : class_of_status(status);
}

// One line of text for people, whatever the provider put there.
std::string tidy(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  if (text.size() > kLongestMessage) {
    text.resize(kLongestMessage);
  }
  return text;
}

}  // namespace

std::string_view name_of(ErrorClass cls) {
  switch (cls) {
    case ErrorClass::throttled:
      return "throttled";
    case ErrorClass::no_capacity:
      return "no_capacity";
    case ErrorClass::quota:
      return "quota";
    case ErrorClass::auth:
      return "auth";
    case ErrorClass::bad_request:
      return "bad_request";
    case ErrorClass::ambiguous:
      return "ambiguous";
    case ErrorClass::conflict:
      return "conflict";
    case ErrorClass::gone:
      return "gone";
  }
  return "ambiguous";
}

std::string describe(const CloudError& error) {
  std::string text = std::string(name_of(error.cls)) + ": " + error.code;
  if (!error.message.empty()) {
    text += ": " + error.message;
  }
  if (!error.request_id.empty()) {
    text += " (request " + error.request_id + ")";
  }
  return text;
}

CloudError classify(int status,
                    std::string_view body,
                    std::string_view retry_after_header,
                    std::string_view request_id_header) {
  CloudError error;
  Json details;
  if (const auto json = parse_json("error body", body); json && json->is_object()) {
    details = json->value("error", Json());
  }
  error.code = tidy(json_or<std::string>(details, "code", ""));
  error.message = tidy(json_or<std::string>(details, "message", ""));
  error.request_id =
      tidy(json_or<std::string>(details, "request_id", std::string(request_id_header)));
  error.allocation_id = tidy(json_or<std::string>(details, "allocation_id", ""));
  if (error.message.empty() && details.is_null()) {
    error.message = tidy(std::string(trim(body.substr(0, kLongestMessage))));
  }
  error.cls = class_of(status, error.code, error.message);
  error.unsure = error.cls == ErrorClass::no_capacity && status >= 500;
  if (error.code.empty()) {
    error.code = "http_" + std::to_string(status);
  }
  // Retry-After may also be a date; the growing delay serves then.
  if (const auto wait = parse_integer("Retry-After", trim(retry_after_header), 0, 1'000'000'000)) {
    error.retry_after = std::chrono::seconds(*wait);
  }
  return error;
}

}  // namespace acb::cloud

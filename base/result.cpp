// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace acb {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::denied:
      return "denied";
    case ErrorCode::exists:
      return "exists";
    case ErrorCode::exhausted:
      return "exhausted";
    case ErrorCode::rate_limited:
      return "rate_limited";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

tl::unexpected<Error> fail_with(std::string_view context, const Error& error) {
  return fail(error.code, std::string(context) + ": " + error.message);
}

static ErrorCode code_of_errno(int number) {
  switch (number) {
    case ENOENT:
    case ESRCH:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
      return ErrorCode::denied;
    case EEXIST:
      return ErrorCode::exists;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
      return ErrorCode::exhausted;
    case ETIMEDOUT:
    case EAGAIN:
      return ErrorCode::timeout;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return ErrorCode::unavailable;
    case EINVAL:
      return ErrorCode::invalid;
    default:
      return ErrorCode::internal;
  }
}

tl::unexpected<Error> fail_errno(std::string_view context) {
  const int number = errno;
  return fail(code_of_errno(number),
              std::string(context) + ": " + std::system_category().message(number));
}

}  // namespace acb

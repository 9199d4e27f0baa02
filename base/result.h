// SPDX-License-Identifier: Apache-2.0
// Errors as values. A function that can fail returns Result<T>; the code of its Error says what a
// caller can do.
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace acb {

/// What the caller can do about an error.
enum class ErrorCode {
  invalid,       ///< the input is wrong: tell whoever gave it
  not_found,     ///< there is no such thing
  denied,        ///< credentials or permissions: tell a person
  exists,        ///< there is one already
  exhausted,     ///< no capacity, quota, memory or disk: try elsewhere or later
  rate_limited,  ///< wait and ask again
  timeout,       ///< no answer in time: the outcome is unknown
  unavailable,   ///< the other side is not there: try again
  corrupt,       ///< data fails its check
  internal,      ///< our own bug
};

/// The code's name as it stands in messages and JSON.
[[nodiscard]] std::string_view name_of(ErrorCode code);

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  ///< "<component>: <what failed>: <value>: <cause>", lower case
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// `return fail(ErrorCode::invalid, "nodes: " + text + ": must be 1 to 64");`
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
/// Passes an error up with context in front: `return fail_with("reading " + path, result.error());`
[[nodiscard]] tl::unexpected<Error> fail_with(std::string_view context, const Error& error);
/// The calling thread's errno as an Error: ENOENT is not_found, EACCES and EPERM denied, ENOSPC and
/// EDQUOT exhausted.
[[nodiscard]] tl::unexpected<Error> fail_errno(std::string_view context);

}  // namespace acb

// ACB_TRY(expr) passes the error of a Status or Result up; ACB_TRY_ASSIGN(auto x, expr) also binds
// the value.
#define ACB_TRY(expression)                                               \
  do {                                                                    \
    if (auto acb_status = (expression); !acb_status) {                    \
      return tl::unexpected<::acb::Error>(std::move(acb_status).error()); \
    }                                                                     \
  } while (false)
#define ACB_CONCAT_(a, b) a##b  // NOLINT(readability-identifier-naming): the inner half of a pair
#define ACB_CONCAT(a, b) ACB_CONCAT_(a, b)
#define ACB_TRY_ASSIGN(declaration, expression) \
  ACB_TRY_ASSIGN_(ACB_CONCAT(acb_result_, __LINE__), declaration, expression)
#define ACB_TRY_ASSIGN_(result, declaration, expression) /* NOLINT: the inner half */ \
  auto result = (expression); /* NOLINT(bugprone-macro-parentheses): a name */        \
  if (!result) {              /* NOLINT(bugprone-macro-parentheses): a name */        \
    return tl::unexpected<::acb::Error>(std::move(result).error());                   \
  }                                                                                   \
  declaration = std::move(*result) /* NOLINT(bugprone-macro-parentheses): a declaration */

// SPDX-License-Identifier: Apache-2.0
// Text to numbers and times, and back. All functions are pure and thread-safe.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acb {

/// The whole of `text` as a decimal integer in [least, most]; else `invalid`, naming `what`, the
/// text and the range.
[[nodiscard]] Result<std::int64_t> parse_integer(std::string_view what,
                                                 std::string_view text,
                                                 std::int64_t least,
                                                 std::int64_t most);
/// The whole of `text` as a finite number in [least, most]; else `invalid`, naming `what`, the text
/// and the range.
[[nodiscard]] Result<double> parse_number(std::string_view what,
                                          std::string_view text,
                                          double least,
                                          double most);
/// The shortest text that reads back as the same number.
[[nodiscard]] std::string format_number(double value);
/// "true"/"yes"/"on"/"1" or "false"/"no"/"off"/"0".
[[nodiscard]] Result<bool> parse_bool(std::string_view what, std::string_view text);

/// The pieces between separators, empty ones included; the empty text has one empty piece.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
[[nodiscard]] std::string join(const std::vector<std::string>& pieces, std::string_view separator);
[[nodiscard]] std::string_view trim(std::string_view text);

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;
[[nodiscard]] WallTime wall_now();
/// "2026-01-31T23:59:59.123Z", and back (a fraction and 'Z' or an offset are accepted).
[[nodiscard]] std::string format_time(WallTime time);
[[nodiscard]] Result<WallTime> parse_time(std::string_view what, std::string_view text);

[[nodiscard]] std::string to_hex(std::string_view bytes);
/// `bytes` bytes from the kernel's random source, in hexadecimal.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace acb

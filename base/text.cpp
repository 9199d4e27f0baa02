// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>
#include <sys/random.h>
#include <time.h>

#include <charconv>
#include <cmath>
#include <cstdio>

namespace acb {

namespace {

template <typename Number>
Result<Number> parse_whole(std::string_view what,
                           std::string_view text,
                           Number least,
                           Number most) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc{} && end == text.data() + text.size() && value >= least &&
      value <= most) {
    return value;
  }
  return fail(ErrorCode::invalid,
              fmt::format("{}: '{}': must be {} to {}", what, text, least, most));
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view what,
                                   std::string_view text,
                                   std::int64_t least,
                                   std::int64_t most) {
  return parse_whole(what, text, least, most);
}

Result<double> parse_number(std::string_view what,
                            std::string_view text,
                            double least,
                            double most) {
  return parse_whole(what, text, least, most);
}

std::string format_number(double value) {
  return fmt::format("{}", value);
}

Result<bool> parse_bool(std::string_view what, std::string_view text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") {
    return true;
  }
  if (text == "false" || text == "no" || text == "off" || text == "0") {
    return false;
  }
  return fail(ErrorCode::invalid, fmt::format("{}: '{}': must be true or false", what, text));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return pieces;
    }
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& pieces, std::string_view separator) {
  return fmt::format("{}", fmt::join(pieces, separator));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::string format_time(WallTime time) {
  const auto milliseconds = time.time_since_epoch().count();
  auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  auto fraction = milliseconds % 1000;
  if (fraction < 0) {
    fraction += 1000;
    --seconds;
  }
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), fraction);
}

Result<WallTime> parse_time(std::string_view what, std::string_view text) {
  const auto refuse = [&] {
    return fail(ErrorCode::invalid,
                fmt::format("{}: '{}': must be a time such as 2026-01-31T23:59:59Z", what, text));
  };
  const std::string copy(text);
  std::tm parts{};
  const char* rest = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) {
    return refuse();
  }
  double fraction = 0;
  if (*rest == '.') {
    const char* end = copy.c_str() + copy.size();
    const auto [stop, status] = std::from_chars(rest, end, fraction, std::chars_format::fixed);
    if (status != std::errc{}) {
      return refuse();
    }
    rest = stop;
  }
  int offset_hours = 0;
  int offset_minutes = 0;
  char sign = '+';
  const std::string_view zone(rest);
  if (zone != "Z" && (zone.size() != 6 ||
                      std::sscanf(rest, "%c%2d:%2d", &sign, &offset_hours, &offset_minutes) != 3 ||
                      (sign != '+' && sign != '-'))) {
    return refuse();
  }
  const auto offset =
      std::chrono::minutes((sign == '-' ? -1 : 1) * (offset_hours * 60 + offset_minutes));
  const auto milliseconds = std::chrono::milliseconds(std::lround(fraction * 1000));
  return WallTime(std::chrono::seconds(timegm(&parts)) + milliseconds - offset);
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  std::size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = getrandom(raw.data() + filled, bytes - filled, 0);
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
    }
  }
  return to_hex(raw);
}

}  // namespace acb

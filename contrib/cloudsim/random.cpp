// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/random.h"

#include "base/text.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

namespace acb::sim {

namespace {

constexpr double kMostSeconds = 1e9;

std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::string_view purpose, std::uint64_t ordinal) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const unsigned char byte : purpose) {
    hash = (hash ^ byte) * 0x100000001b3ULL;
  }
  return mixed(mixed(mixed(seed) ^ hash) ^ ordinal);
}

double random_unit(std::uint64_t seed, std::string_view purpose, std::uint64_t ordinal) {
  return static_cast<double>(random_bits(seed, purpose, ordinal) >> 11) * 0x1.0p-53;
}

std::string random_id(std::string_view prefix, std::uint64_t seed, std::uint64_t ordinal) {
  return fmt::format("{}-{:08x}", prefix, random_bits(seed, prefix, ordinal) >> 32);
}

std::chrono::milliseconds Distribution::at(double unit) const {
  double seconds = low;
  if (shape == Shape::uniform) {
    seconds = low + (high - low) * unit;
  } else if (shape == Shape::exponential) {
    seconds = -low * std::log1p(-unit);
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

Result<Distribution> parse_distribution(std::string_view what, std::string_view text) {
  Distribution parsed;
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
    parsed.shape = Distribution::Shape::uniform;
    ACB_TRY_ASSIGN(parsed.low, parse_number(what, text.substr(0, dots), 0, kMostSeconds));
    ACB_TRY_ASSIGN(parsed.high,
                   parse_number(what, text.substr(dots + 2), parsed.low, kMostSeconds));
    return parsed;
  }
  if (text.starts_with("exp ")) {
    parsed.shape = Distribution::Shape::exponential;
    text.remove_prefix(4);
  }
  ACB_TRY_ASSIGN(parsed.low, parse_number(what, text, 0, kMostSeconds));
  return parsed;
}

std::string format_distribution(const Distribution& distribution) {
  switch (distribution.shape) {
    case Distribution::Shape::fixed:
      return format_number(distribution.low);
    case Distribution::Shape::uniform:
      return format_number(distribution.low) + ".." + format_number(distribution.high);
    case Distribution::Shape::exponential:
      return "exp " + format_number(distribution.low);
  }
  return {};
}

}  // namespace acb::sim

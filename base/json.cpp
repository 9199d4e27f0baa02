// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

namespace acb {

namespace {

/// What nests deeper is no message of anybody's, and dump() recurses.
constexpr int kDeepest = 100;

bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\' ? 1U : 0U;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) {
        return true;
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<Json> parse_json(std::string_view what, std::string_view text) {
  if (is_too_deep(text)) {
    return fail(ErrorCode::corrupt,
                std::string(what) + ": nested deeper than " + std::to_string(kDeepest));
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    return fail(ErrorCode::corrupt, std::string(what) + ": " + error.what());
  }
}

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace acb

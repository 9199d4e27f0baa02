// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

namespace acb {

Result<Json> parse_json(std::string_view what, std::string_view text) {
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

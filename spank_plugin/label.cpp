// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/label.h"

namespace acb::spank {

Result<OptionValues> read_label(const std::vector<std::string_view>& entries) {
  OptionValues values;
  const std::array<std::pair<std::string_view, std::optional<std::string>*>, 3> names = {
      {{kLabelBurst, &values.burst}, {kLabelGpu, &values.gpu}, {kLabelMarket, &values.market}}};
  for (const std::string_view entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    for (const auto& [name, value] : names) {
      if (entry.substr(0, equals) != name) {
        continue;
      }
      if (*value) {
        return fail(ErrorCode::invalid,
                    std::string(name) + ": set twice in the job's control environment");
      }
      *value = std::string(entry.substr(equals + 1));
    }
  }
  return values;
}

std::string format_record(const BurstRecord& record) {
  return "autocloud:v1 burst=" + std::to_string(record.burst) +
         " own=" + std::to_string(record.own) + " gpu=" + record.gpu +
         " market=" + std::string(name_of(record.market));
}

}  // namespace acb::spank

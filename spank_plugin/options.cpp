// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/options.h"

#include "base/text.h"

#include <algorithm>

namespace acb::spank {

namespace {

std::string quoted(std::string_view what, std::string_view value) {
  return std::string(what) + ": '" + std::string(value) + "': ";
}

Result<std::string> parse_gpu(const std::string& text, const Limits& limits) {
  if (limits.gpu_types.empty()) {
    if (!is_gpu_type(text)) {
      return fail(ErrorCode::invalid,
                  quoted(kGpuOption, text) + "must be a GPU type such as a100-80gb");
    }
    return text;
  }
  if (std::find(limits.gpu_types.begin(), limits.gpu_types.end(), text) == limits.gpu_types.end()) {
    return fail(ErrorCode::invalid,
                quoted(kGpuOption, text) + "must be one of " + join(limits.gpu_types, ", "));
  }
  return text;
}

Result<std::vector<std::string>> parse_gpu_list(std::string_view text) {
  std::vector<std::string> types = split(text, ',');
  for (const std::string& type : types) {
    if (!is_gpu_type(type)) {
      return fail(ErrorCode::invalid,
                  quoted("plugstack.conf: gpu_types", type) + "must be a GPU type");
    }
  }
  return types;
}

}  // namespace

std::string_view name_of(Market market) {
  return market == Market::spot ? "spot" : "on-demand";
}

Result<Market> parse_market(std::string_view what, std::string_view text) {
  if (text == "spot") {
    return Market::spot;
  }
  if (text == "on-demand") {
    return Market::on_demand;
  }
  return fail(ErrorCode::invalid, quoted(what, text) + "must be spot or on-demand");
}

bool is_gpu_type(std::string_view text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

Result<std::optional<BurstOptions>> parse_options(const OptionValues& values,
                                                  const Limits& limits) {
  if (!values.burst) {
    if (values.gpu || values.market) {
      return fail(ErrorCode::invalid,
                  quoted(values.gpu ? kGpuOption : kMarketOption,
                         values.gpu ? *values.gpu : *values.market) +
                      "needs --autocloud-burst=N beside it");
    }
    return std::optional<BurstOptions>();
  }
  BurstOptions options;
  ACB_TRY_ASSIGN(const std::int64_t nodes,
                 parse_integer(kBurstOption, *values.burst, 1, limits.max_nodes));
  options.nodes = static_cast<int>(nodes);
  if (values.gpu) {
    ACB_TRY_ASSIGN(options.gpu, parse_gpu(*values.gpu, limits));
  }
  if (values.market) {
    ACB_TRY_ASSIGN(options.market, parse_market(kMarketOption, *values.market));
  }
  return std::optional<BurstOptions>(std::move(options));
}

Result<Limits> parse_plugin_arguments(const std::vector<std::string_view>& arguments) {
  Limits limits;
  for (const std::string_view argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string_view key = argument.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : argument.substr(equals + 1);
    if (key == "max_nodes") {
      ACB_TRY_ASSIGN(const std::int64_t nodes,
                     parse_integer("plugstack.conf: max_nodes", value, 1, kMostNodes));
      limits.max_nodes = static_cast<int>(nodes);
    } else if (key == "gpu_types") {
      ACB_TRY_ASSIGN(limits.gpu_types, parse_gpu_list(value));
    } else {
      return fail(ErrorCode::invalid,
                  quoted("plugstack.conf: argument", argument) +
                      "must be max_nodes=N or gpu_types=TYPE,...");
    }
  }
  return limits;
}

}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
// What the control socket can be asked.
#include "cloudsim/control.h"
#include "cloudsim/render.h"

#include <cmath>

namespace acb::sim {

namespace {

Json refusal(const Error& error) {
  return {{"error", {{"code", name_of(error.code)}, {"message", error.message}}}};
}

Json take(Simulator& simulator, const Json& request) {
  const double notice_s = json_or(request, "notice_s", -1.0);
  std::optional<std::chrono::milliseconds> notice;
  if (notice_s >= 0) {
    notice = std::chrono::milliseconds(std::llround(notice_s * 1000));
  }
  const auto taken = simulator.with([&](Fleet& fleet, FaultPlan&, WallTime now) {
    return fleet.take(json_or(request, "instance_id", std::string()), notice, now);
  });
  return taken ? Json{{"taken", true}} : refusal(taken.error());
}

Json instances(Simulator& simulator) {
  return simulator.with([](Fleet& fleet, FaultPlan&, WallTime now) {
    Json lines = Json::array();
    for (const Allocation& allocation : fleet.all()) {
      const Json rendered = allocation_json(allocation, fleet.scenario(), now);
      for (Json line : rendered["instances"]) {
        for (const char* key : {"allocation_id", "gpu_type", "market", "offer_id", "tags"}) {
          line[key] = rendered[key];
        }
        lines.push_back(std::move(line));
      }
    }
    return Json{{"instances", lines}};
  });
}

Json add_fault(Simulator& simulator, const Json& request) {
  FaultRule rule;
  rule.name = json_or(request, "name", std::string());
  if (rule.name.empty() || !request.contains("rule") || !request["rule"].is_object()) {
    return refusal({ErrorCode::invalid, "fault: needs a name and a rule"});
  }
  RawSettings raw;
  for (const auto& [key, value] : request["rule"].items()) {
    raw[key] = {value.is_string() ? value.get<std::string>() : dump_json(value)};
  }
  if (const auto done = apply_settings(rule, fault_settings(), raw, "fault"); !done) {
    return refusal(done.error());
  }
  simulator.with([&](Fleet&, FaultPlan& faults, WallTime now) { faults.add(rule, now); });
  return {{"added", rule.name}};
}

Json list_faults(Simulator& simulator) {
  return simulator.with([](Fleet&, FaultPlan& faults, WallTime) {
    Json lines = Json::array();
    for (const FaultPlan::Standing& standing : faults.standing()) {
      Json rule = Json::object();
      for (const auto& row : fault_settings()) {
        rule[row.key] = row.get(standing.rule);
      }
      lines.push_back({{"name", standing.rule.name},
                       {"met", standing.met},
                       {"hits", standing.hits},
                       {"rule", rule}});
    }
    return Json{{"faults", lines}};
  });
}

}  // namespace

Json control_reply(Simulator& simulator, const Json& request) {
  const auto op = json_or(request, "op", std::string());
  if (op == "take") {
    return take(simulator, request);
  }
  if (op == "instances") {
    return instances(simulator);
  }
  if (op == "bill") {
    return {{"bill", simulator.bill()}};
  }
  if (op == "fault_add") {
    return add_fault(simulator, request);
  }
  if (op == "fault_list") {
    return list_faults(simulator);
  }
  if (op == "fault_remove") {
    return simulator.with([&](Fleet&, FaultPlan& faults, WallTime) {
      return Json{{"removed", faults.remove(json_or(request, "name", std::string()))}};
    });
  }
  return refusal({ErrorCode::invalid, "control: op '" + op + "': no such request"});
}

}  // namespace acb::sim

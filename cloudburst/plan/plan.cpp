// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/plan/plan.h"

#include "cloudburst/plan/draft.h"

namespace acb::cloud {

std::string_view name_of(CallKind kind) {
  switch (kind) {
    case CallKind::create:
      return "create";
    case CallKind::look_up:
      return "look up";
    case CallKind::get:
      return "get";
    case CallKind::release:
      return "release";
    case CallKind::list:
      return "list";
    case CallKind::offers:
      return "offers";
    case CallKind::set_address:
      return "set address";
    case CallKind::set_down:
      return "set down";
    case CallKind::power_down_force:
      return "power down";
    case CallKind::resume:
      return "resume";
    case CallKind::requeue:
      return "requeue";
    case CallKind::set_start:
      return "set start";
    case CallKind::set_comment:
      return "set comment";
  }
  return "unknown";
}

bool may_go_unwritten(CallKind kind) {
  return kind == CallKind::release || kind == CallKind::get || kind == CallKind::list;
}

std::string Call::subject() const {
  switch (kind) {
    case CallKind::create:
    case CallKind::look_up:
    case CallKind::get:
    case CallKind::release:
      return "lease " + key;
    case CallKind::list:
    case CallKind::offers:
      return std::string(name_of(kind));
    case CallKind::set_address:
    case CallKind::set_down:
    case CallKind::power_down_force:
    case CallKind::resume:
      return std::string(name_of(kind)) + " " + join(nodes, ",");
    case CallKind::requeue:
    case CallKind::set_start:
    case CallKind::set_comment:
      return std::string(name_of(kind)) + " " + std::to_string(job);
  }
  return "unknown";
}

Money reservation(Money price_per_hour,
                  std::chrono::seconds time_limit,
                  std::chrono::seconds boot_timeout,
                  int minimum_min) {
  return cost_of(price_per_hour, time_limit + boot_timeout + std::chrono::minutes(minimum_min));
}

Plan plan(const View& view, const Policy& policy) {
  Draft draft(view, policy);
  plan_orders(draft);
  plan_orphans(draft);
  plan_owners(draft);
  plan_bursts(draft);
  plan_leases(draft);
  plan_nodes(draft);
  return draft.finish();
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
// How instances come up and go.
#include "cloudsim/fleet.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace acb::sim {

std::string_view name_of(InstanceStatus status) {
  switch (status) {
    case InstanceStatus::booting:
      return "booting";
    case InstanceStatus::running:
      return "running";
    case InstanceStatus::releasing:
      return "releasing";
    case InstanceStatus::released:
      return "released";
    case InstanceStatus::lost:
      return "lost";
  }
  return "?";
}

std::string_view name_of(AllocationStatus status) {
  switch (status) {
    case AllocationStatus::pending:
      return "pending";
    case AllocationStatus::running:
      return "running";
    case AllocationStatus::releasing:
      return "releasing";
    case AllocationStatus::released:
      return "released";
    case AllocationStatus::failed:
      return "failed";
  }
  return "?";
}

AllocationStatus Allocation::status() const {
  const auto any = [&](InstanceStatus status) {
    return std::any_of(instances.begin(), instances.end(), [&](const Instance& instance) {
      return instance.status == status;
    });
  };
  if (failure) {
    return AllocationStatus::failed;
  }
  if (any(InstanceStatus::booting)) {
    return AllocationStatus::pending;
  }
  if (any(InstanceStatus::running)) {
    return AllocationStatus::running;
  }
  return any(InstanceStatus::releasing) ? AllocationStatus::releasing : AllocationStatus::released;
}

std::int64_t Allocation::billed_s(const Instance& instance, WallTime now) const {
  if (failure) {
    return 0;
  }
  return billed_seconds(terms, instance.billed_until.value_or(now) - instance.billed_from);
}

Money Allocation::cost(const Instance& instance, WallTime now) const {
  return cost_of(terms.price_per_hour, billed_s(instance, now));
}

void Fleet::note(const Allocation& allocation,
                 const Instance* instance,
                 std::string event,
                 WallTime now,
                 std::string detail) {
  events_.push_back({now,
                     std::move(event),
                     allocation.id,
                     instance == nullptr ? std::string() : instance->instance_id,
                     std::move(detail)});
}

void Fleet::destroy(Instance& instance) {
  if (instance.started) {
    commands_.push_back({FleetCommand::Kind::destroy, instance.instance_id});
  } else {
    instance.destroyed = true;
  }
}

void Fleet::end(Allocation& allocation, Instance& instance, InstanceStatus status, WallTime now) {
  instance.status = status;
  instance.billed_until = now;
  note(allocation, &instance, std::string(name_of(status)), now);
}

void Fleet::begin_release(Allocation& allocation, Instance& instance, WallTime now) {
  instance.status = InstanceStatus::releasing;
  instance.release_due =
      now + scenario_.release_s.at(draw("release " + instance.instance_id, allocation.ordinal));
  note(allocation, &instance, "releasing", now);
  destroy(instance);
}

void Fleet::lose(Allocation& allocation, Instance& instance, WallTime now) {
  end(allocation, instance, InstanceStatus::lost, now);
  destroy(instance);
}

void Fleet::fail_allocation(Allocation& allocation, const std::string& why, WallTime now) {
  allocation.failure = ApiError{500, "boot_failed", why};
  note(allocation, nullptr, "failed", now, why);
  for (Instance& instance : allocation.instances) {
    if (!instance.is_gone()) {
      end(allocation, instance, InstanceStatus::released, now);
      destroy(instance);
    }
  }
}

ApiResult<Released> Fleet::release(const std::string& allocation_id,
                                   const std::vector<std::string>& instance_ids,
                                   WallTime now) {
  Allocation* allocation = find_mutable(allocation_id);
  if (allocation == nullptr || allocation->job) {
    return not_found("allocation '" + allocation_id + "': no such allocation");
  }
  std::vector<Instance*> named;
  for (Instance& instance : allocation->instances) {
    if (instance_ids.empty() ||
        std::find(instance_ids.begin(), instance_ids.end(), instance.instance_id) !=
            instance_ids.end()) {
      named.push_back(&instance);
    }
  }
  for (const std::string& id : instance_ids) {
    if (find_instance(id).first != allocation) {
      return not_found("instance '" + id + "': not in allocation " + allocation_id);
    }
  }
  Released outcome = Released::already_gone;
  for (Instance* instance : named) {
    if (instance->is_live()) {
      begin_release(*allocation, *instance, now);
    }
    if (!instance->is_gone()) {
      outcome = Released::releasing;
    }
  }
  return outcome;
}

ApiResult<void> Fleet::cancel(const std::string& job_id, WallTime now) {
  Allocation* allocation = find_mutable(job_id);
  if (allocation == nullptr || !allocation->job) {
    return not_found("job '" + job_id + "': no such job");
  }
  for (Instance& instance : allocation->instances) {
    if (instance.is_live()) {
      allocation->job->cancelled = true;
      begin_release(*allocation, instance, now);
    }
  }
  return {};
}

void Fleet::release_all(WallTime now) {
  for (Allocation& allocation : allocations_) {
    for (Instance& instance : allocation.instances) {
      if (instance.is_live()) {
        begin_release(allocation, instance, now);
      }
      instance.release_due = std::min(instance.release_due, now);
    }
  }
}

Status Fleet::take(const std::string& instance_id,
                   std::optional<std::chrono::milliseconds> notice,
                   WallTime now) {
  const Place found = place(instance_id);
  if (found.instance == nullptr) {
    return fail(ErrorCode::not_found, "take: instance '" + instance_id + "': no such instance");
  }
  if (!found.instance->is_live()) {
    return fail(
        ErrorCode::invalid,
        fmt::format("take: instance '{}': is {}", instance_id, name_of(found.instance->status)));
  }
  if (notice) {
    found.instance->take_due = now + *notice;
    found.instance->notice_due = now;
  } else {
    found.instance->take_due = now;
    found.instance->notice_due.reset();
  }
  advance_instance(*found.allocation, *found.instance, now);
  return {};
}

void Fleet::booted(const std::string& instance_id, const std::string& address, WallTime now) {
  const Place found = place(instance_id);
  if (found.instance == nullptr || found.instance->status != InstanceStatus::booting) {
    return;
  }
  found.instance->status = InstanceStatus::running;
  found.instance->address = address;
  note(*found.allocation, found.instance, "running", now, address);
}

void Fleet::exited(const std::string& instance_id, int exit_code, WallTime now) {
  const Place found = place(instance_id);
  if (found.instance == nullptr || !found.instance->is_live()) {
    return;
  }
  Allocation& allocation = *found.allocation;
  if (allocation.job) {
    allocation.job->exit_code = exit_code;
    begin_release(allocation, *found.instance, now);
    found.instance->release_due = now;
  } else if (found.instance->status == InstanceStatus::booting && exit_code != 0) {
    fail_allocation(
        allocation, fmt::format("{}: boot exited with {}", instance_id, exit_code), now);
  } else {
    note(allocation, found.instance, "powered_off", now);
    begin_release(allocation, *found.instance, now);
  }
}

void Fleet::destroyed(const std::string& instance_id, WallTime now) {
  const Place found = place(instance_id);
  if (found.instance != nullptr) {
    found.instance->destroyed = true;
    advance_instance(*found.allocation, *found.instance, now);
  }
}

void Fleet::advance(WallTime now) {
  for (Allocation& allocation : allocations_) {
    for (Instance& instance : allocation.instances) {
      advance_instance(allocation, instance, now);
    }
  }
}

void Fleet::advance_instance(Allocation& allocation, Instance& instance, WallTime now) {
  if (instance.status == InstanceStatus::booting && !instance.started && now >= instance.boot_due) {
    if (instance.boot_fault == FaultKind::boot_fails) {
      fail_allocation(allocation, instance.instance_id + ": hardware failed its check", now);
    } else if (!instance.boot_fault) {
      instance.started = true;
      commands_.push_back({FleetCommand::Kind::start, instance.instance_id});
    }
  }
  if (instance.is_live() && instance.notice_due && now >= *instance.notice_due &&
      !instance.interruption_at) {
    instance.interruption_at = instance.take_due;
    note(allocation, &instance, "notice", now, format_time(*instance.take_due));
  }
  if (instance.is_live() && instance.take_due && now >= *instance.take_due) {
    lose(allocation, instance, now);
  }
  if (instance.is_live() && allocation.job && allocation.job->request.max_duration_min > 0 &&
      now - instance.billed_from >=
          std::chrono::minutes(allocation.job->request.max_duration_min)) {
    note(allocation, &instance, "time_limit", now);
    begin_release(allocation, instance, now);
  }
  if (instance.status == InstanceStatus::releasing && instance.destroyed &&
      now >= instance.release_due) {
    end(allocation, instance, InstanceStatus::released, now);
  }
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cloud.h"

#include <algorithm>

namespace acb::cloud {

namespace {
constexpr auto kListDelay = std::chrono::seconds(60);

CloudError error_of(ErrorClass cls, const char* code) {
  return {.cls = cls,
          .code = code,
          .message = "as the model says",
          .request_id = "req-1",
          .retry_after = std::nullopt,
          .allocation_id = ""};
}
}  // namespace

void FakeCloud::step(WallTime now) {
  while (!late_.empty() && late_.begin()->first <= now) {
    make(late_.begin()->second, now);
    late_.erase(late_.begin());
  }
  const double minutes = std::chrono::duration<double, std::ratio<60>>(now - last_).count();
  for (Machine& machine : machines_) {
    if (machine.status == InstanceStatus::releasing && machine.released <= now) {
      machine.status = InstanceStatus::released;
    }
    if (machine.status == InstanceStatus::booting && machine.boots <= now && machine.boots_ever) {
      const bool leaves = faults.switches_off > 0 && chance(faults.switches_off);
      machine.status = leaves ? InstanceStatus::released : InstanceStatus::running;
      machine.released = now;
    }
    const bool takeable =
        machine.status == InstanceStatus::booting || machine.status == InstanceStatus::running;
    if (last_ != WallTime{} && takeable && chance(faults.taken_per_minute * minutes)) {
      machine.status = InstanceStatus::lost;
    }
  }
  last_ = now;
}

FakeCloud::Machine& FakeCloud::make(const std::string& key, WallTime now) {
  const auto found = std::find_if(machines_.begin(), machines_.end(), [&](const Machine& machine) {
    return machine.key == key;
  });
  if (found != machines_.end()) {
    return *found;
  }
  Machine machine;
  machine.id = "a-" + std::to_string(machines_.size() + 1);
  machine.key = key;
  machine.node = split(key, '/').at(3);
  machine.accepted = now;
  machine.boots = now + std::chrono::seconds(std::uniform_int_distribution<>(2, 20)(random_));
  machine.boots_ever = !chance(faults.never_boots);
  machines_.push_back(machine);
  return machines_.back();
}

std::optional<CloudError> FakeCloud::trouble() {
  if (chance(faults.throttled)) {
    CloudError error = error_of(ErrorClass::throttled, "rate_limited");
    error.retry_after = faults.retry_after;
    return error;
  }
  if (chance(faults.lost_request)) {
    return error_of(ErrorClass::ambiguous, "timeout");
  }
  return std::nullopt;
}

CloudResult<Allocation> FakeCloud::allocate(const std::string& key, WallTime now) {
  if (auto error = trouble()) {
    return tl::unexpected(*error);
  }
  if (chance(faults.lost_create)) {
    return tl::unexpected(error_of(ErrorClass::ambiguous, "timeout"));
  }
  if (chance(faults.no_capacity)) {
    return tl::unexpected(error_of(ErrorClass::no_capacity, "insufficient_capacity"));
  }
  if (chance(faults.made_though_full)) {
    make(key, now);
    CloudError error = error_of(ErrorClass::no_capacity, "internal");
    error.unsure = true;
    return tl::unexpected(error);
  }
  if (chance(faults.refused)) {
    return tl::unexpected(error_of(ErrorClass::auth, "unauthorized"));
  }
  if (chance(faults.late)) {
    arrive_later(key, now + std::chrono::seconds(std::uniform_int_distribution<>(1, 60)(random_)));
    return tl::unexpected(error_of(ErrorClass::ambiguous, "timeout"));
  }
  const bool is_new = std::none_of(machines_.begin(), machines_.end(), [&](const Machine& machine) {
    return machine.key == key;
  });
  Machine& machine = make(key, now);
  if (chance(faults.lost_reply)) {
    return tl::unexpected(error_of(ErrorClass::ambiguous, "http_502"));
  }
  if (!is_new && !machine.is_billed()) {
    return tl::unexpected(error_of(ErrorClass::conflict, "idempotency_expired"));
  }
  return as_allocation(machine);
}

CloudResult<std::optional<Allocation>> FakeCloud::find_by_key(const std::string& key) {
  if (auto error = trouble()) {
    return tl::unexpected(*error);
  }
  for (const Machine& machine : machines_) {
    if (machine.key == key) {
      return std::optional(as_allocation(machine));
    }
  }
  return std::optional<Allocation>();
}

CloudResult<Allocation> FakeCloud::get(const std::string& id) {
  if (auto error = trouble()) {
    return tl::unexpected(*error);
  }
  const Machine* machine = find(id);
  if (machine == nullptr) {
    return tl::unexpected(error_of(ErrorClass::gone, "not_found"));
  }
  return as_allocation(*machine);
}

CloudResult<Provider::Released> FakeCloud::release(const std::string& id, WallTime now) {
  if (auto error = trouble()) {
    return tl::unexpected(*error);
  }
  Machine* machine = find(id);
  if (machine == nullptr) {
    return tl::unexpected(error_of(ErrorClass::gone, "not_found"));
  }
  if (!machine->is_billed()) {
    return Provider::Released::confirmed;
  }
  if (machine->status != InstanceStatus::releasing && !chance(faults.forgets_release)) {
    machine->status = InstanceStatus::releasing;
    machine->released = now + std::chrono::seconds(std::uniform_int_distribution<>(0, 10)(random_));
  }
  if (chance(faults.lost_reply)) {
    return tl::unexpected(error_of(ErrorClass::ambiguous, "timeout"));
  }
  return Provider::Released::accepted;
}

CloudResult<std::vector<Allocation>> FakeCloud::list(WallTime now) {
  if (auto error = trouble()) {
    return tl::unexpected(*error);
  }
  std::vector<Allocation> listed;
  for (const Machine& machine : machines_) {
    if (now - machine.accepted > kListDelay || chance(0.5)) {
      listed.push_back(as_allocation(machine));
    }
  }
  return listed;
}

CloudResult<std::vector<Offer>> FakeCloud::offers() {
  if (auto error = trouble()) {
    return tl::unexpected(*error);
  }
  std::vector<Offer> offers(2);
  for (int i = 0; i < 2; ++i) {
    Offer& offer = offers[static_cast<std::size_t>(i)];
    offer.offer_id = "offer-" + std::to_string(i);
    offer.gpu_type = "a100-80gb";
    offer.market = Market::spot;
    offer.price_per_hour = Money::from_micros(1'000'000 * (i + 1));
  }
  return offers;
}

void FakeCloud::take(const std::string& id) {
  if (Machine* machine = find(id); machine != nullptr && machine->is_billed()) {
    machine->status = InstanceStatus::lost;
  }
}

const FakeCloud::Machine* FakeCloud::running(const std::string& node) const {
  for (const Machine& machine : machines_) {
    if (machine.node == node && machine.status == InstanceStatus::running) {
      return &machine;
    }
  }
  return nullptr;
}

FakeCloud::Machine* FakeCloud::find(const std::string& id) {
  const auto found = std::find_if(
      machines_.begin(), machines_.end(), [&](const Machine& machine) { return machine.id == id; });
  return found == machines_.end() ? nullptr : &*found;
}

Allocation FakeCloud::as_allocation(const Machine& machine) const {
  const std::vector<std::string> parts = split(machine.key, '/');
  Allocation allocation;
  allocation.allocation_id = machine.id;
  allocation.request_id = "req-" + machine.id;
  allocation.gpu_type = "a100-80gb";
  allocation.market = Market::spot;
  allocation.price_per_hour = Money::from_micros(1'000'000);
  allocation.tags = {{"cluster", parts.at(0)},
                     {"job", parts.at(1)},
                     {"restart", parts.at(2)},
                     {"node", parts.at(3)},
                     {"attempt", parts.at(4)}};
  Instance instance;
  instance.instance_id = "i" + machine.id;
  instance.status = machine.status;
  instance.billed_from = machine.accepted;
  if (machine.status == InstanceStatus::running) {
    instance.address = "10.0.0." + machine.id.substr(2);
  }
  switch (machine.status) {
    case InstanceStatus::booting:
      allocation.status = AllocationStatus::pending;
      break;
    case InstanceStatus::running:
      allocation.status = AllocationStatus::running;
      break;
    case InstanceStatus::releasing:
      allocation.status = AllocationStatus::releasing;
      break;
    default:
      allocation.status = AllocationStatus::released;
      instance.billed_until = machine.released;
  }
  allocation.instances.push_back(instance);
  return allocation;
}

}  // namespace acb::cloud

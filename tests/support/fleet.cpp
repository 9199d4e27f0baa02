// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fleet.h"

#include "cloudburst/plan/outcomes.h"

#include <algorithm>

namespace acb::cloud {

namespace {
constexpr auto kTick = std::chrono::milliseconds(500);
}

Fleet::Fleet(std::uint64_t seed, int nodes)
    : now(std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}),
      random(seed),
      cloud(random),
      slurm(nodes, now) {
  policy.cluster = "sim";
  policy.default_gpu = "a100-80gb";
  policy.boot_timeout = std::chrono::seconds(100);
}

void Fleet::run(std::chrono::seconds time, const std::function<void()>& each) {
  const WallTime end = now + time;
  while (now < end) {
    if (each) {
      each();
    }
    tick();
  }
}

void Fleet::tick() {
  now += kTick;
  cloud.step(now);
  slurm.step(now, [&](const std::string& node) { return cloud.running(node) != nullptr; });
  for (HookOrder& order : slurm.take_orders()) {
    inbox_.push_back(std::move(order));
  }
  if (now >= down_until_ && advance_calls() && take_orders()) {
    decide();
  }
  check();
}

/// To be asked before every action, and after each that is alone in its tick.
bool Fleet::dies() {
  ++actions;
  if (actions != crash_at && !chance(crash)) {
    return false;
  }
  // Short, or long enough for what is on the wire to arrive.
  crash_now(std::chrono::seconds(chance(0.2) ? 70 : 3));
  return true;
}

/// False where the daemon has died before or after it.
bool Fleet::commit(const Changes& changes) {
  if (changes.empty()) {
    book.apply(changes);
    return true;
  }
  if (dies()) {
    return false;
  }
  write(changes);
  return !dies();
}

void Fleet::write(const Changes& changes) {
  Changes written = changes;
  written.figures.clear();
  ledger.apply(written);
  book.apply(changes);
}

bool Fleet::take_orders() {
  Changes orders;
  orders.orders = inbox_;
  if (disk_full) {
    return true;
  }
  if (!commit(orders)) {
    return false;  // the files are still there, and are taken again
  }
  inbox_.clear();
  return true;
}

void Fleet::decide() {
  const SlurmPicture picture = slurm.picture(now);
  for (const SlurmNode& node : picture.nodes) {
    if (node.allocated) {
      unowned_.erase(node.name);
    } else {
      unowned_.emplace(node.name, now);
    }
  }
  std::set<std::string> busy;
  for (const Flight& flight : flights_) {
    busy.insert(flight.call.subject());
  }
  const View view{&book, &picture, &seen_, &busy, &unowned_, now, jitter()};
  Plan plan = acb::cloud::plan(view, policy);
  seen_.list_is_new = false;
  for (Lease& lease : plan.changes.leases) {
    if (lease.state == LeaseState::wanted && lease.request.empty()) {
      lease.request = "body of " + lease.key;
      lease.secret_sha256 = "00ff";
    }
  }
  if (disk_full && !plan.changes.empty()) {
    std::erase_if(plan.calls, [](const Call& call) { return !may_go_unwritten(call.kind); });
  } else if (!commit(plan.changes)) {
    return;
  }
  for (Call& call : plan.calls) {
    made.push_back(call);
    Flight flight;
    flight.call = std::move(call);
    flight.performs = now + std::chrono::milliseconds(static_cast<int>(jitter() * 1500));
    flight.returns = flight.performs + std::chrono::milliseconds(static_cast<int>(jitter() * 1500));
    if (flight.call.kind == CallKind::list) {
      seen_.list_asked = now;
    } else if (flight.call.kind == CallKind::offers) {
      seen_.offers_asked = now;
    }
    flights_.push_back(std::move(flight));
  }
}

bool Fleet::advance_calls() {
  for (Flight& flight : flights_) {
    if (!flight.deliver && flight.performs <= now) {
      if (dies()) {
        return false;
      }
      perform(flight);
    }
    if (flight.deliver && flight.returns <= now) {
      if (dies()) {
        return false;
      }
      flight.deliver();
      flight.is_over = true;
    }
  }
  std::erase_if(flights_, [](const Flight& flight) { return flight.is_over; });
  return true;
}

void Fleet::settle(const std::string& key, const std::function<Lease(Lease)>& change) {
  const auto old = book.leases.find(key);
  if (disk_full || old == book.leases.end()) {
    return;
  }
  Changes changes;
  changes.add(old->second, change(old->second));
  write(changes);
}

void Fleet::perform(Flight& flight) {
  const Call& call = flight.call;
  const std::string key = call.key;
  switch (call.kind) {
    case CallKind::create:
      check_written_ahead(key);
      flight.deliver = [this, key, answer = cloud.allocate(key, now)] {
        settle(key, [&](Lease lease) { return after_create(lease, answer, now, jitter()); });
      };
      break;
    case CallKind::look_up:
      flight.deliver = [this, key, answer = cloud.find_by_key(key)] {
        settle(key, [&](Lease lease) { return after_look_up(lease, answer, now, jitter()); });
      };
      break;
    case CallKind::get:
      flight.deliver = [this, key, answer = cloud.get(call.text)] {
        settle(key, [&](Lease lease) { return after_get(lease, answer, now, jitter()); });
      };
      break;
    case CallKind::release:
      flight.deliver = [this, key, answer = cloud.release(call.text, now)] {
        settle(key, [&](Lease lease) { return after_release(lease, answer, now, jitter()); });
      };
      break;
    case CallKind::list:
      flight.deliver = [this, answer = cloud.list(now), asked = *seen_.list_asked] {
        if (answer) {
          seen_.listed = *answer;
          seen_.listed_at = asked;
          seen_.list_is_new = true;
        }
      };
      break;
    case CallKind::offers:
      flight.deliver = [this, answer = cloud.offers()] {
        if (answer) {
          seen_.offers = *answer;
          seen_.offers_at = now;
          seen_.offers_failed = 0;
          seen_.offers_error.reset();
        } else {
          ++seen_.offers_failed;
          seen_.offers_error = answer.error();
        }
      };
      break;
    default:
      perform_on_slurm(call);
      flight.deliver = [] {};
  }
}

void Fleet::perform_on_slurm(const Call& call) {
  switch (call.kind) {
    case CallKind::set_address:
      slurm.set_address(call.nodes.front(), call.text);
      break;
    case CallKind::set_down:
      slurm.set_down(call.nodes, call.text, now);
      break;
    case CallKind::power_down_force:
      slurm.power_down_force(call.nodes, now);
      break;
    case CallKind::resume:
      slurm.resume(call.nodes);
      break;
    case CallKind::requeue:
      slurm.requeue(call.job, now);
      break;
    case CallKind::set_start:
      slurm.set_start(call.job, call.at);
      break;
    case CallKind::set_comment:
      slurm.set_comment(call.job, call.text);
      break;
    default:
      break;
  }
}

void Fleet::crash_now(std::chrono::milliseconds down) {
  for (const Flight& flight : flights_) {
    // A request may be on the wire when its sender dies.
    if (flight.call.kind == CallKind::create && !flight.deliver && chance(0.5)) {
      cloud.arrive_later(
          flight.call.key,
          now + std::chrono::seconds(std::uniform_int_distribution<>(0, 40)(random)));
    }
  }
  flights_.clear();
  seen_ = {};
  book = ledger;
  unowned_.clear();
  down_until_ = now + down;
}

/// What could cost money is in the ledger: the exact request, and that its outcome is unknown.
void Fleet::check_written_ahead(const std::string& key) {
  const auto lease = book.leases.find(key);
  if (lease == book.leases.end() || lease->second.request.empty() || !lease->second.unanswered) {
    broken.push_back(format_time(now) + ": " + key + " is asked for, but not written down");
  }
}

void Fleet::check() {
  std::map<std::string, int> per_node;
  for (const FakeCloud::Machine& machine : cloud.machines()) {
    if (!machine.is_billed()) {
      continue;
    }
    const auto lease = book.leases.find(machine.key);
    if (lease == book.leases.end() || !lease->second.is_live()) {
      broken.push_back(format_time(now) + ": " + machine.key + " is billed without a live lease");
    }
    if (++per_node[machine.node] > 1) {
      broken.push_back(format_time(now) + ": two machines live as " + machine.node);
    }
  }
  std::set<std::string> serving;
  for (const auto& [key, lease] : book.leases) {
    // As the ledger's index has it.
    if (lease.is_live() && lease.state != LeaseState::releasing &&
        !serving.insert(lease.node).second) {
      broken.push_back(format_time(now) + ": two leases serve as " + lease.node);
    }
  }
  for (const auto& [id, burst] : book.bursts) {
    if (burst.state == BurstState::failed && burst.reason.empty()) {
      broken.push_back(format_time(now) + ": job " + std::to_string(id.job) +
                       " failed without a reason");
    }
  }
}

std::string Fleet::leftovers() const {
  std::string left;
  for (const FakeCloud::Machine& machine : cloud.machines()) {
    if (machine.is_billed()) {
      left += machine.key + " is billed; ";
    }
  }
  for (const auto& [key, lease] : book.leases) {
    if (lease.is_live()) {
      left += key + " is " + std::string(name_of(lease.state)) + "; ";
    }
  }
  for (const auto& [name, node] : slurm.nodes()) {
    if (!node.powered_down || node.down || node.allocated || node.powering_up) {
      left += name + " is not idle~; ";
    }
  }
  return left;
}

std::vector<const Lease*> Fleet::leases(LeaseState state) const {
  std::vector<const Lease*> found;
  for (const auto& [key, lease] : book.leases) {
    if (lease.state == state) {
      found.push_back(&lease);
    }
  }
  return found;
}

int Fleet::count(CallKind kind) const {
  return static_cast<int>(
      std::count_if(made.begin(), made.end(), [&](const Call& call) { return call.kind == kind; }));
}

}  // namespace acb::cloud

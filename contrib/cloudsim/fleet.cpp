// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/fleet.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace acb::sim {

namespace {

constexpr std::chrono::seconds kMostListDelay{60};

std::chrono::year_month month_of(WallTime time) {
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(time)};
  return day.year() / day.month();
}

bool has_tags(const Allocation& allocation,
              const std::vector<std::pair<std::string, std::string>>& tags) {
  return std::all_of(tags.begin(), tags.end(), [&](const auto& tag) {
    const auto found = allocation.tags.find(tag.first);
    return found != allocation.tags.end() && found->second == tag.second;
  });
}

}  // namespace

Fleet::Fleet(const Scenario& scenario, WallTime start) : scenario_(scenario), start_(start) {}

double Fleet::draw(std::string_view purpose, std::uint64_t ordinal) const {
  return random_unit(scenario_.seed, purpose, ordinal);
}

Money Fleet::price_now(const OfferSpec& offer, WallTime now) const {
  return price_at(offer, now - start_);
}

std::int64_t Fleet::gpus_used(const std::string& gpu_type) const {
  std::int64_t used = 0;
  for (const Allocation& allocation : allocations_) {
    for (const Instance& instance : allocation.instances) {
      if (allocation.offer->gpu_type == gpu_type && !instance.is_gone()) {
        used += instance.gpus;
      }
    }
  }
  return used;
}

std::int64_t Fleet::free_instances(const OfferSpec& offer) const {
  std::int64_t used = 0;
  for (const Allocation& allocation : allocations_) {
    for (const Instance& instance : allocation.instances) {
      if (allocation.offer == &offer && !instance.is_gone()) {
        used += instance.units;
      }
    }
  }
  return std::max<std::int64_t>(0, offer.capacity - used);
}

Money Fleet::spent(WallTime now) const {
  Money sum;
  for (const Allocation& allocation : allocations_) {
    if (month_of(allocation.accepted_at) != month_of(now)) {
      continue;
    }
    for (const Instance& instance : allocation.instances) {
      sum = sum + allocation.cost(instance, now);
    }
  }
  return sum;
}

ApiResult<Choice> Fleet::admit(const Wish& wish, WallTime now) const {
  std::vector<Candidate> candidates;
  for (const OfferSpec& offer : scenario_.offers) {
    candidates.push_back({&offer, price_now(offer, now), free_instances(offer)});
  }
  const auto limit = scenario_.quota.find(wish.gpu_type);
  if (limit != scenario_.quota.end()) {
    const std::int64_t used = gpus_used(wish.gpu_type);
    if (used + wish.gpus > limit->second) {
      return refuse(
          403,
          "quota_exceeded",
          fmt::format(
              "quota of {} {}: {} used, {} asked", limit->second, wish.gpu_type, used, wish.gpus));
    }
  }
  return choose(wish, candidates);
}

Allocation& Fleet::accept(const Choice& choice, const std::string& idempotency_key, WallTime now) {
  Allocation& allocation = allocations_.emplace_back();
  allocation.ordinal = allocations_.size();
  allocation.accepted_at = now;
  const auto delay = scenario_.list_delay_s.at(draw("list", allocation.ordinal));
  allocation.listed_at = now + std::min<std::chrono::milliseconds>(delay, kMostListDelay);
  allocation.idempotency_key = idempotency_key;
  allocation.offer = choice.offer;
  allocation.terms = {choice.price, choice.offer->granularity_s, choice.offer->minimum_min, 0};
  return allocation;
}

void Fleet::plan_take(Instance& instance, const OfferSpec& offer, std::uint64_t ordinal) const {
  const auto life = offer.take_after_s.at(draw("take", ordinal));
  if (life.count() == 0) {
    return;
  }
  instance.take_due = instance.billed_from + life;
  if (offer.notice_s >= 0 && draw("notice", ordinal) < offer.notice_probability) {
    instance.notice_due = *instance.take_due - std::chrono::seconds(offer.notice_s);
  }
}

void Fleet::add_instance(Allocation& allocation, const Instance& shape, FaultPlan& faults) {
  Instance& instance = allocation.instances.emplace_back(shape);
  std::uint64_t ordinal = 0;
  do {
    ordinal = ++instances_made_;
    instance.instance_id = random_id("i", scenario_.seed, ordinal);
  } while (by_instance_.contains(instance.instance_id));
  by_instance_[instance.instance_id] = allocation.ordinal - 1;
  instance.billed_from = allocation.accepted_at;
  instance.boot_due = allocation.accepted_at + scenario_.boot_s.at(draw("boot", ordinal));
  if (const auto fault = faults.on_boot(allocation.idempotency_key, allocation.accepted_at)) {
    instance.boot_fault = fault->kind;
  }
  plan_take(instance, *allocation.offer, ordinal);
}

ApiResult<const Allocation*> Fleet::allocate(const AllocateRequest& request,
                                             const std::string& idempotency_key,
                                             FaultPlan& faults,
                                             WallTime now) {
  const auto choice = admit(request.wish, now);
  if (!choice) {
    return tl::unexpected(choice.error());
  }
  Allocation& allocation = accept(*choice, idempotency_key, now);
  allocation.id = random_id("al", scenario_.seed, allocation.ordinal);
  by_id_[allocation.id] = allocation.ordinal - 1;
  allocation.terms.duration_min = request.duration_min;
  allocation.tags = request.tags;
  allocation.user_data = request.user_data;
  note(allocation, nullptr, "accepted", now, choice->offer->offer_id);
  Instance shape;
  shape.gpus = choice->offer->gpus_per_instance;
  for (std::int64_t i = 0; i < choice->instances; ++i) {
    add_instance(allocation, shape, faults);
  }
  return &allocation;
}

ApiResult<const Allocation*> Fleet::submit(const JobRequest& request,
                                           const std::string& idempotency_key,
                                           FaultPlan& faults,
                                           WallTime now) {
  const auto choice = admit(request.wish, now);
  if (!choice) {
    return tl::unexpected(choice.error());
  }
  Allocation& allocation = accept(*choice, idempotency_key, now);
  allocation.id = random_id("job", scenario_.seed, allocation.ordinal);
  by_id_[allocation.id] = allocation.ordinal - 1;
  allocation.terms.price_per_hour.micro *= choice->instances;
  allocation.tags = request.tags;
  allocation.job = JobRun{request, false, std::nullopt};
  note(allocation, nullptr, "accepted", now, choice->offer->offer_id);
  Instance shape;
  shape.gpus = request.wish.gpus;
  shape.units = choice->instances;
  add_instance(allocation, shape, faults);
  return &allocation;
}

std::vector<const Allocation*> Fleet::list(const ListQuery& query, WallTime now) const {
  std::vector<const Allocation*> page;
  for (auto each = allocations_.rbegin(); each != allocations_.rend(); ++each) {
    const bool shown = query.idempotency_key ? each->idempotency_key == *query.idempotency_key
                                             : each->listed_at <= now;
    if (page.size() < query.limit && shown && each->ordinal < query.before &&
        each->job.has_value() == query.jobs && has_tags(*each, query.tags)) {
      page.push_back(&*each);
    }
  }
  // "the one allocation made under this key": a key outlives its use only after 30 days.
  if (query.idempotency_key && page.size() > 1) {
    page.resize(1);
  }
  return page;
}

const Allocation* Fleet::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &allocations_[found->second];
}

Allocation* Fleet::find_mutable(const std::string& id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &allocations_[found->second];
}

std::pair<const Allocation*, const Instance*> Fleet::find_instance(
    const std::string& instance_id) const {
  const auto found = by_instance_.find(instance_id);
  if (found == by_instance_.end()) {
    return {nullptr, nullptr};
  }
  const Allocation& allocation = allocations_[found->second];
  const auto instance = std::find_if(
      allocation.instances.begin(), allocation.instances.end(), [&](const Instance& each) {
        return each.instance_id == instance_id;
      });
  return {&allocation, &*instance};
}

Fleet::Place Fleet::place(const std::string& instance_id) {
  const auto found = by_instance_.find(instance_id);
  if (found == by_instance_.end()) {
    return {};
  }
  Allocation& allocation = allocations_[found->second];
  const auto instance = std::find_if(
      allocation.instances.begin(), allocation.instances.end(), [&](const Instance& each) {
        return each.instance_id == instance_id;
      });
  return {&allocation, &*instance};
}

ApiResult<const Allocation*> Fleet::set_tags(const std::string& allocation_id,
                                             const std::map<std::string, std::string>& tags) {
  Allocation* allocation = find_mutable(allocation_id);
  if (allocation == nullptr || allocation->job) {
    return not_found("allocation '" + allocation_id + "': no such allocation");
  }
  for (const auto& [key, value] : tags) {
    allocation->tags[key] = value;
  }
  return allocation;
}

}  // namespace acb::sim

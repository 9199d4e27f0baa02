// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/render.h"

#include <set>

namespace acb::sim {

namespace {

Json time_or_null(const std::optional<WallTime>& time) {
  return time ? Json(format_time(*time)) : Json(nullptr);
}

Json instance_json(const Allocation& allocation, const Instance& instance, WallTime now) {
  Json interruption = nullptr;
  if (instance.interruption_at) {
    interruption = {{"action", "terminate"}, {"at", format_time(*instance.interruption_at)}};
  }
  const bool bills = !allocation.failure;
  return {{"instance_id", instance.instance_id},
          {"status", name_of(instance.status)},
          {"billed_from", bills ? Json(format_time(instance.billed_from)) : Json(nullptr)},
          {"billed_until", bills ? time_or_null(instance.billed_until) : Json(nullptr)},
          {"billed_s", allocation.billed_s(instance, now)},
          {"cost", format_money(allocation.cost(instance, now))},
          {"address", instance.address ? Json(*instance.address) : Json(nullptr)},
          {"gpus", instance.gpus},
          {"interruption", interruption}};
}

std::string_view job_status(const Allocation& job) {
  const Instance& instance = job.instances.front();
  if (job.failure) {
    return "failed";
  }
  if (instance.status == InstanceStatus::booting) {
    return "pending";
  }
  if (!instance.is_gone()) {
    return "running";
  }
  if (job.job->cancelled) {
    return "cancelled";
  }
  return job.job->exit_code == 0 ? "succeeded" : "failed";
}

}  // namespace

Json error_json(const ApiError& error, const std::string& request_id) {
  Json inner = {{"code", error.code}, {"message", error.message}, {"request_id", request_id}};
  for (const auto& [key, value] : error.extra) {
    inner[key] = value;
  }
  return {{"error", inner}};
}

Json allocation_json(const Allocation& allocation, const Scenario& scenario, WallTime now) {
  Json instances = Json::array();
  for (const Instance& instance : allocation.instances) {
    instances.push_back(instance_json(allocation, instance, now));
  }
  Json json = {{"allocation_id", allocation.id},
               {"status", name_of(allocation.status())},
               {"gpu_type", allocation.offer->gpu_type},
               {"market", name_of(allocation.offer->market)},
               {"zone", allocation.offer->zone},
               {"offer_id", allocation.offer->offer_id},
               {"price_per_hour", format_money(allocation.terms.price_per_hour)},
               {"currency", scenario.currency},
               {"granularity_s", allocation.terms.granularity_s},
               {"minimum_min", allocation.terms.minimum_min},
               {"tags", allocation.tags},
               {"instances", instances},
               {"error", nullptr}};
  if (allocation.failure) {
    json["error"] = error_json(*allocation.failure, allocation.id)["error"];
  }
  return json;
}

Json job_json(const Allocation& job, WallTime now) {
  const Instance& instance = job.instances.front();
  return {{"job_id", job.id},
          {"name", job.job->request.name},
          {"status", job_status(job)},
          {"exit_code", job.job->exit_code ? Json(*job.job->exit_code) : Json(nullptr)},
          {"price_per_hour", format_money(job.terms.price_per_hour)},
          {"billed_s", job.billed_s(instance, now)},
          {"cost", format_money(job.cost(instance, now))},
          {"tags", job.tags}};
}

Json offer_json(const OfferSpec& offer, const Fleet& fleet, WallTime now) {
  return {{"offer_id", offer.offer_id},
          {"gpu_type", offer.gpu_type},
          {"zone", offer.zone},
          {"market", name_of(offer.market)},
          {"granularity_s", offer.granularity_s},
          {"minimum_min", offer.minimum_min},
          {"gpus_per_instance", offer.gpus_per_instance},
          {"cpus", offer.cpus},
          {"memory_gib", offer.memory_gib},
          {"local_nvme_gib", offer.local_nvme_gib},
          {"rdma_gbps", offer.rdma_gbps},
          {"price_per_hour", format_money(fleet.price_now(offer, now))},
          {"currency", fleet.scenario().currency},
          {"available", offer.tell_available ? Json(fleet.free_instances(offer)) : Json(nullptr)},
          {"notice_s", offer.notice_s >= 0 ? Json(offer.notice_s) : Json(nullptr)}};
}

Json prices_json(const OfferSpec& offer,
                 const Fleet& fleet,
                 std::optional<WallTime> since,
                 WallTime now) {
  Json prices = Json::array();
  for (std::size_t i = 0; i < offer.prices.size(); ++i) {
    const WallTime at = fleet.start() + offer.prices[i].after;
    const bool over =
        since && i + 1 < offer.prices.size() && fleet.start() + offer.prices[i + 1].after <= *since;
    if (at <= now && !over) {
      prices.push_back(
          {{"at", format_time(at)}, {"price_per_hour", format_money(offer.prices[i].price)}});
    }
  }
  return {{"prices", prices}};
}

Json account_json(const Fleet& fleet, WallTime now) {
  const Scenario& scenario = fleet.scenario();
  std::set<std::string> types;
  for (const OfferSpec& offer : scenario.offers) {
    types.insert(offer.gpu_type);
  }
  Json quota = Json::array();
  for (const std::string& type : types) {
    const auto limit = scenario.quota.find(type);
    quota.push_back({{"gpu_type", type},
                     {"gpus", limit == scenario.quota.end() ? Json(nullptr) : Json(limit->second)},
                     {"used", fleet.gpus_used(type)}});
  }
  return {{"quota", quota},
          {"currency", scenario.currency},
          {"spent_this_month", format_money(fleet.spent(now))}};
}

Json bill_line(const Allocation& allocation, const Instance& instance, WallTime now) {
  return {{"allocation_id", allocation.id},
          {"instance_id", instance.instance_id},
          {"status", name_of(instance.status)},
          {"from", format_time(instance.billed_from)},
          {"to", time_or_null(instance.billed_until)},
          {"billed_s", allocation.billed_s(instance, now)},
          {"price_per_hour", format_money(allocation.terms.price_per_hour)},
          {"cost", format_money(allocation.cost(instance, now))}};
}

}  // namespace acb::sim

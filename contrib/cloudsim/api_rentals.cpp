// SPDX-License-Identifier: Apache-2.0
// The calls about allocations, jobs, offers and the account.
#include "cloudsim/api.h"
#include "cloudsim/render.h"

#include <spdlog/fmt/fmt.h>

namespace acb::sim {

namespace {

constexpr std::size_t kKeyLimit = 128;
constexpr std::int64_t kPageLimit = 500;

std::optional<std::string> query_value(const ApiRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::nullopt : std::optional(found->second);
}

ApiResult<Json> json_body(const ApiRequest& request) {
  if (request.broken) {
    return bad_argument("body: broke off, or is above 1 MiB");
  }
  if (request.body.empty()) {
    return Json::object();
  }
  auto json = parse_json("body", request.body);
  if (!json || !json->is_object()) {
    return bad_argument(json ? "body: must be a JSON object" : json.error().message);
  }
  return *std::move(json);
}

ApiReply reply_of(int status, const Json& json) {
  return {status, dump_json(json)};
}

ApiResult<ListQuery> parse_list_query(const ApiRequest& request, bool jobs) {
  ListQuery query;
  query.jobs = jobs;
  query.idempotency_key = query_value(request, "idempotency_key");
  const auto [first, last] = request.query.equal_range("tag");
  for (auto each = first; each != last; ++each) {
    auto tag = parse_tag(each->second);
    if (!tag) {
      return tl::unexpected(tag.error());
    }
    query.tags.push_back(*std::move(tag));
  }
  if (const auto text = query_value(request, "limit")) {
    const auto limit = parse_integer("limit", *text, 1, kPageLimit);
    if (!limit) {
      return bad_argument(limit.error().message);
    }
    query.limit = static_cast<std::size_t>(*limit);
  }
  if (const auto text = query_value(request, "cursor")) {
    const auto before = parse_integer("cursor", *text, 1, INT64_MAX);
    if (!before) {
      return bad_argument("cursor: '" + *text + "': is not one of ours");
    }
    query.before = static_cast<std::uint64_t>(*before);
  }
  return query;
}

}  // namespace

ApiResult<ApiReply> Api::create(const ApiRequest& request, Keyspace space, const Maker& maker) {
  using Verdict = IdempotencyStore::Verdict;
  const std::string& key = request.idempotency_key;
  const std::string id_name = space == Keyspace::jobs ? "job_id" : "allocation_id";
  if (key.size() > kKeyLimit) {
    return bad_argument(
        fmt::format("Idempotency-Key: {} bytes: at most {}", key.size(), kKeyLimit));
  }
  if (!key.empty()) {
    // Compared as JSON: the order of members and blanks do not make another request.
    auto claim = simulator_.claim(space, key, dump_json(*json_body(request)));
    if (claim.verdict == Verdict::replay) {
      return ApiReply{201, std::move(claim.reply)};
    }
    if (claim.verdict != Verdict::fresh) {
      const bool expired = claim.verdict == Verdict::expired;
      return tl::unexpected(
          ApiError{409,
                   expired ? "idempotency_expired" : "idempotency_mismatch",
                   expired ? "what this key made is gone" : "this key was used for another body",
                   std::nullopt,
                   {{id_name, claim.made}}});
    }
  }
  simulator_.pause(simulator_.scenario().allocate_latency_s.at(
      random_unit(simulator_.scenario().seed, "allocate", static_cast<std::uint64_t>(calls_))));
  std::string made;
  auto reply =
      simulator_.with([&](Fleet& fleet, FaultPlan& faults, WallTime now) -> ApiResult<ApiReply> {
        const auto result = maker(fleet, faults, now);
        if (!result) {
          return tl::unexpected(result.error());
        }
        made = (*result)->id;
        return reply_of(201,
                        space == Keyspace::jobs ? job_json(**result, now)
                                                : allocation_json(**result, fleet.scenario(), now));
      });
  if (!key.empty() && reply) {
    simulator_.complete(space, key, made, reply->body);
  } else if (!key.empty()) {
    simulator_.abandon(space, key);
  }
  return reply;
}

ApiResult<ApiReply> Api::allocate(const Context& context) {
  const auto body = json_body(context.request);
  if (!body) {
    return tl::unexpected(body.error());
  }
  const auto parsed = parse_allocate(*body);
  if (!parsed) {
    return tl::unexpected(parsed.error());
  }
  return create(
      context.request, Keyspace::allocations, [&](Fleet& fleet, FaultPlan& faults, WallTime now) {
        return fleet.allocate(*parsed, context.request.idempotency_key, faults, now);
      });
}

ApiResult<ApiReply> Api::create_job(const Context& context) {
  const auto body = json_body(context.request);
  if (!body) {
    return tl::unexpected(body.error());
  }
  const auto parsed = parse_job(*body);
  if (!parsed) {
    return tl::unexpected(parsed.error());
  }
  return create(
      context.request, Keyspace::jobs, [&](Fleet& fleet, FaultPlan& faults, WallTime now) {
        return fleet.submit(*parsed, context.request.idempotency_key, faults, now);
      });
}

ApiResult<ApiReply> Api::list_all(const Context& context, bool jobs) {
  auto query = parse_list_query(context.request, jobs);
  if (!query) {
    return tl::unexpected(query.error());
  }
  const std::size_t limit = query->limit++;  // one more tells whether a page follows
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) {
    auto found = fleet.list(*query, now);
    Json next = nullptr;
    if (found.size() > limit) {
      found.pop_back();
      next = std::to_string(found.back()->ordinal);
    }
    Json page = Json::array();
    for (const Allocation* each : found) {
      page.push_back(jobs ? job_json(*each, now) : allocation_json(*each, fleet.scenario(), now));
    }
    return reply_of(200, {{jobs ? "jobs" : "allocations", page}, {"next_cursor", next}});
  });
}

ApiResult<ApiReply> Api::list_allocations(const Context& context) {
  return list_all(context, false);
}

ApiResult<ApiReply> Api::list_jobs(const Context& context) {
  return list_all(context, true);
}

ApiResult<ApiReply> Api::get_allocation(const Context& context) {
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) -> ApiResult<ApiReply> {
    const Allocation* found = fleet.find(context.id);
    if (found == nullptr || found->job) {
      return not_found("allocation '" + context.id + "': no such allocation");
    }
    return reply_of(200, allocation_json(*found, fleet.scenario(), now));
  });
}

ApiResult<ApiReply> Api::patch_allocation(const Context& context) {
  const auto body = json_body(context.request);
  if (!body) {
    return tl::unexpected(body.error());
  }
  const auto tags = parse_tags(*body);
  if (!tags) {
    return tl::unexpected(tags.error());
  }
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) -> ApiResult<ApiReply> {
    const auto changed = fleet.set_tags(context.id, *tags);
    if (!changed) {
      return tl::unexpected(changed.error());
    }
    return reply_of(200, allocation_json(**changed, fleet.scenario(), now));
  });
}

ApiResult<ApiReply> Api::release_allocation(const Context& context) {
  const auto body = json_body(context.request);
  if (!body) {
    return tl::unexpected(body.error());
  }
  const auto ids = parse_instance_ids(*body);
  if (!ids) {
    return tl::unexpected(ids.error());
  }
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) -> ApiResult<ApiReply> {
    const auto outcome = fleet.release(context.id, *ids, now);
    if (!outcome) {
      return tl::unexpected(outcome.error());
    }
    return reply_of(*outcome == Released::releasing ? 202 : 200,
                    allocation_json(*fleet.find(context.id), fleet.scenario(), now));
  });
}

ApiResult<ApiReply> Api::list_offers(const Context& context) {
  const auto gpu_type = query_value(context.request, "gpu_type");
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) {
    Json offers = Json::array();
    for (const OfferSpec& offer : fleet.scenario().offers) {
      if (!gpu_type || *gpu_type == offer.gpu_type) {
        offers.push_back(offer_json(offer, fleet, now));
      }
    }
    return reply_of(200, {{"offers", offers}});
  });
}

ApiResult<ApiReply> Api::list_prices(const Context& context) {
  const auto gpu_type = query_value(context.request, "gpu_type");
  const auto zone = query_value(context.request, "zone");
  if (!gpu_type || !zone) {
    return bad_argument("gpu_type and zone: are required");
  }
  std::optional<WallTime> since;
  if (const auto text = query_value(context.request, "since")) {
    const auto time = parse_time("since", *text);
    if (!time) {
      return bad_argument(time.error().message);
    }
    since = *time;
  }
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) -> ApiResult<ApiReply> {
    const OfferSpec* found = nullptr;
    for (const OfferSpec& offer : fleet.scenario().offers) {
      // Where both markets sell a type in a zone, the one whose price moves.
      if (offer.gpu_type == *gpu_type && offer.zone == *zone &&
          (found == nullptr || offer.market == Market::spot)) {
        found = &offer;
      }
    }
    if (found == nullptr) {
      return not_found("offer of '" + *gpu_type + "' in '" + *zone + "': no such offer");
    }
    return reply_of(200, prices_json(*found, fleet, since, now));
  });
}

ApiResult<ApiReply> Api::account(const Context&) {
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) {
    return reply_of(200, account_json(fleet, now));
  });
}

ApiResult<ApiReply> Api::get_job(const Context& context) {
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) -> ApiResult<ApiReply> {
    const Allocation* found = fleet.find(context.id);
    if (found == nullptr || !found->job) {
      return not_found("job '" + context.id + "': no such job");
    }
    return reply_of(200, job_json(*found, now));
  });
}

ApiResult<ApiReply> Api::cancel_job(const Context& context) {
  return simulator_.with([&](Fleet& fleet, FaultPlan&, WallTime now) -> ApiResult<ApiReply> {
    if (const auto cancelled = fleet.cancel(context.id, now); !cancelled) {
      return tl::unexpected(cancelled.error());
    }
    return reply_of(202, job_json(*fleet.find(context.id), now));
  });
}

}  // namespace acb::sim

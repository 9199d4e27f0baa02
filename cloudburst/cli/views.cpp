// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/cli/views.h"

#include "cloudburst/cli/table.h"
#include "cloudburst/provider/money.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace acb::cloud {

namespace {

const Json& list_in(const Json& reply, const char* name) {
  static const Json none = Json::array();
  const auto found = reply.find(name);
  return found != reply.end() && found->is_array() ? *found : none;
}

// Whatever stands there, as a cell of a table.
std::string cell(const Json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) {
    return "-";
  }
  std::string text = found->is_string() ? found->get<std::string>() : dump_json(*found);
  // Names and messages come from outside; a terminal must not obey them.
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text.empty() ? "-" : text;
}

std::string clock_cell(const Json& row, const char* name) {
  const auto time = parse_time(name, json_or<std::string>(row, name, ""));
  if (!time) {
    return "-";
  }
  return format_time(*time).substr(0, 19) + "Z";
}

std::string price_cell(const Json& row, const char* name) {
  const std::string amount = cell(row, name);
  const std::string currency = cell(row, "currency");
  return amount == "-" || currency == "-" ? amount : amount + " " + currency;
}

using Row = std::vector<std::string>;

std::vector<Row> rows_of(const Json& list, const std::vector<const char*>& names) {
  std::vector<Row> rows;
  for (const Json& entry : list) {
    Row row;
    for (const char* name : names) {
      const std::string_view text(name);
      const bool is_time = text == "since" || text == "from" || text == "to";
      row.push_back(is_time          ? clock_cell(entry, name)
                    : text == "cost" ? price_cell(entry, name)
                                     : cell(entry, name));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string reason_text(const Json& reason) {
  std::string text = cell(reason, "text");
  std::vector<std::string> details;
  for (const char* name : {"code", "request_id"}) {
    if (const std::string value = cell(reason, name); value != "-") {
      details.push_back((std::string_view(name) == "code" ? "code " : "request ") + value);
    }
  }
  if (!details.empty()) {
    text += " (" + join(details, ", ") + ")";
  }
  return text;
}

std::string one_burst(const Json& burst, WallTime now) {
  const std::string wanted = cell(burst, "wanted");
  std::string text = fmt::format("job {} (start {}): {}, {} rented node{} wanted\n",
                                 cell(burst, "job"),
                                 cell(burst, "restart"),
                                 cell(burst, "state"),
                                 wanted,
                                 wanted == "1" ? "" : "s");
  if (const auto reason = burst.find("reason"); reason != burst.end() && reason->is_object()) {
    text += "  reason: " + reason_text(*reason) + "\n";
  }
  if (const std::string waits = cell(burst, "slurm_reason"); waits != "-") {
    text += "  in Slurm's queue: " + waits + "\n";
  }
  if (const auto next = parse_time("next_try", json_or<std::string>(burst, "next_try", ""))) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*next - now).count();
    const auto failures = json_or<std::int64_t>(burst, "failures", 0);
    text += fmt::format("  next try: {}{}{}\n",
                        clock_cell(burst, "next_try"),
                        seconds > 0 ? fmt::format(", in {} s", seconds) : "",
                        failures > 1 ? fmt::format(", after {} failures", failures) : "");
  }
  text += "  cost so far: " + price_cell(burst, "cost") + "\n";
  const Json& nodes = list_in(burst, "nodes");
  if (!nodes.empty()) {
    text += format_table(
        {"  NODE", "STATE", "SINCE", "INSTANCE", "ADDRESS", "GPU", "MARKET", "PER HOUR", "COST"},
        [&] {
          auto rows = rows_of(nodes,
                              {"node",
                               "state",
                               "since",
                               "instance",
                               "address",
                               "gpu_type",
                               "market",
                               "price_per_hour",
                               "cost"});
          for (Row& row : rows) {
            row.front().insert(0, "  ");
          }
          return rows;
        }());
  }
  return text;
}

}  // namespace

std::string status_view(const Json& reply, WallTime now) {
  const Json& bursts = list_in(reply, "bursts");
  if (bursts.empty()) {
    return "no bursts\n";
  }
  std::string text;
  for (const Json& burst : bursts) {
    text += one_burst(burst, now);
  }
  return text;
}

std::string nodes_view(const Json& reply) {
  return format_table(
      {"NODE", "STATE", "SLURM", "JOB", "START", "INSTANCE", "ADDRESS", "SINCE"},
      rows_of(list_in(reply, "nodes"),
              {"node", "state", "slurm", "job", "restart", "instance", "address", "since"}));
}

std::string leases_view(const Json& reply) {
  // The daemon's order is that of its keys, where the tenth try comes before the second.
  std::vector<Json> leases = list_in(reply, "leases");
  std::stable_sort(leases.begin(), leases.end(), [](const Json& a, const Json& b) {
    const auto place = [](const Json& lease) {
      return std::tuple(json_or<std::int64_t>(lease, "job", 0),
                        json_or<std::int64_t>(lease, "restart", 0),
                        json_or<std::string>(lease, "node", ""),
                        json_or<std::int64_t>(lease, "attempt", 0));
    };
    return place(a) < place(b);
  });
  return format_table({"JOB",
                       "START",
                       "NODE",
                       "TRY",
                       "USER",
                       "STATE",
                       "INSTANCE",
                       "GPU",
                       "MARKET",
                       "PER HOUR",
                       "FROM",
                       "TO",
                       "BILLED S",
                       "COST"},
                      rows_of(leases,
                              {"job",
                               "restart",
                               "node",
                               "attempt",
                               "user",
                               "state",
                               "instance",
                               "gpu_type",
                               "market",
                               "price_per_hour",
                               "from",
                               "to",
                               "billed_s",
                               "cost"}));
}

Json cost_of_leases(const Json& reply) {
  struct Sum {
    std::string user;
    std::int64_t leases = 0;
    std::int64_t billed_s = 0;
    Money cost;
  };
  std::map<std::int64_t, Sum> sums;
  Money total;
  std::string currency;
  for (const Json& lease : list_in(reply, "leases")) {
    Sum& sum = sums[json_or<std::int64_t>(lease, "job", 0)];
    const Money cost =
        parse_money("cost", json_or<std::string>(lease, "cost", "0")).value_or(Money());
    sum.user = json_or<std::string>(lease, "user", sum.user);
    sum.leases += 1;
    sum.billed_s += json_or<std::int64_t>(lease, "billed_s", 0);
    sum.cost += cost;
    total += cost;
    currency = json_or<std::string>(lease, "currency", currency);
  }
  Json jobs = Json::array();
  for (const auto& [job, sum] : sums) {
    jobs.push_back({{"job", job},
                    {"user", sum.user},
                    {"leases", sum.leases},
                    {"billed_s", sum.billed_s},
                    {"cost", format_money(sum.cost)}});
  }
  return {{"jobs", std::move(jobs)}, {"cost", format_money(total)}, {"currency", currency}};
}

std::string cost_view(const Json& costs) {
  return format_table(
             {"JOB", "USER", "LEASES", "BILLED S", "COST"},
             rows_of(list_in(costs, "jobs"), {"job", "user", "leases", "billed_s", "cost"})) +
         "total: " + price_cell(costs, "cost") + "\n";
}

}  // namespace acb::cloud

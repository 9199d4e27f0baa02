// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/commands.h"

#include "cloudsim/control.h"
#include "cloudsim/scenario.h"
#include "cloudsim/serve.h"

#include <CLI/CLI.hpp>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <functional>

namespace acb::sim {

namespace {

struct ClientOptions {
  std::filesystem::path state;
  bool json = false;
  std::string instance_id;
  double notice_s = -1;
  std::string fault_name;
  RawSettings rule;
};

using Command = std::function<Status()>;

void print_json(const Json& json) {
  fmt::print("{}\n", dump_json(json, 2));
}

std::string cell(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) {
    return "-";
  }
  return found->is_string() ? found->get<std::string>() : dump_json(*found);
}

void print_rows(const Json& rows, const std::vector<const char*>& keys) {
  std::vector<std::size_t> widths;
  for (const char* key : keys) {
    std::size_t width = std::string_view(key).size();
    for (const Json& row : rows) {
      width = std::max(width, cell(row, key).size());
    }
    widths.push_back(width);
  }
  const auto print_row = [&](const auto& text_of) {
    std::string line;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      line += fmt::format("{:<{}}  ", text_of(keys[i]), widths[i]);
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  };
  print_row([](const char* key) { return std::string(key); });
  for (const Json& row : rows) {
    print_row([&](const char* key) { return cell(row, key); });
  }
}

void print(const Json& rows, const std::vector<const char*>& keys, bool as_json) {
  if (as_json) {
    print_json(rows);
  } else {
    print_rows(rows, keys);
  }
}

// The last line of each instance is the one that counts.
Result<Json> bill_from_file(const std::filesystem::path& state) {
  ACB_TRY_ASSIGN(const std::vector<Json> lines, read_journal(state / "bill.jsonl"));
  Json bill = Json::array();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool replaced = std::any_of(
        lines.begin() + static_cast<std::ptrdiff_t>(i) + 1, lines.end(), [&](const Json& later) {
          return later["instance_id"] == lines[i]["instance_id"];
        });
    if (!replaced) {
      bill.push_back(lines[i]);
    }
  }
  return bill;
}

Status show_bill(const ClientOptions& options) {
  Json bill;
  if (auto live = ask(options.state, {{"op", "bill"}})) {
    bill = (*live)["bill"];
  } else if (live.error().code == ErrorCode::unavailable) {
    ACB_TRY_ASSIGN(bill, bill_from_file(options.state));
  } else {
    return tl::unexpected(live.error());
  }
  Money total;
  for (const Json& line : bill) {
    ACB_TRY_ASSIGN(const Money cost, parse_money("cost", json_or(line, "cost", std::string())));
    total = total + cost;
  }
  if (options.json) {
    print_json({{"instances", bill}, {"cost", format_money(total)}});
    return {};
  }
  print_rows(bill, {"instance_id", "allocation_id", "status", "from", "to", "billed_s", "cost"});
  fmt::print("total {}\n", format_money(total));
  return {};
}

Status show_instances(const ClientOptions& options) {
  ACB_TRY_ASSIGN(const Json reply, ask(options.state, {{"op", "instances"}}));
  print(reply["instances"],
        {"instance_id", "allocation_id", "status", "gpu_type", "market", "address", "billed_s"},
        options.json);
  return {};
}

Status show_events(const ClientOptions& options) {
  ACB_TRY_ASSIGN(const std::vector<Json> events, read_journal(options.state / "events.jsonl"));
  print(Json(events), {"at", "event", "allocation_id", "instance_id", "detail"}, options.json);
  return {};
}

Status take(const ClientOptions& options) {
  const Json request = {
      {"op", "take"}, {"instance_id", options.instance_id}, {"notice_s", options.notice_s}};
  ACB_TRY_ASSIGN(const Json reply, ask(options.state, request));
  if (options.json) {
    print_json(reply);
  }
  return {};
}

Status add_fault(const ClientOptions& options) {
  Json rule = Json::object();
  for (const auto& [key, values] : options.rule) {
    rule[key] = values.back();
  }
  ACB_TRY_ASSIGN(
      const Json reply,
      ask(options.state, {{"op", "fault_add"}, {"name", options.fault_name}, {"rule", rule}}));
  if (options.json) {
    print_json(reply);
  }
  return {};
}

Status list_faults(const ClientOptions& options) {
  ACB_TRY_ASSIGN(const Json reply, ask(options.state, {{"op", "fault_list"}}));
  Json rows = reply["faults"];
  if (!options.json) {
    for (Json& row : rows) {
      const Json rule = row["rule"];
      row.update(rule);
    }
  }
  print(rows,
        {"name", "kind", "method", "path", "probability", "count", "met", "hits"},
        options.json);
  return {};
}

Status remove_fault(const ClientOptions& options) {
  ACB_TRY_ASSIGN(const Json reply,
                 ask(options.state, {{"op", "fault_remove"}, {"name", options.fault_name}}));
  if (options.json) {
    print_json(reply);
  } else {
    fmt::print("removed {}\n", dump_json(reply["removed"]));
  }
  return {};
}

Status show_keys(const ClientOptions& options) {
  Json rows = Json::array();
  for (const Flag& key : scenario_keys()) {
    rows.push_back({{"key", key.key}, {"default", key.default_value}, {"help", key.help}});
  }
  print(rows, {"key", "default", "help"}, options.json);
  return {};
}

void add_serve(CLI::App& app, ServeOptions& options, Command& command) {
  CLI::App* serve_app = app.add_subcommand("serve", "serve the cloud's API until SIGTERM");
  serve_app->footer(
      "Example:\n  cloudsim serve --scenario scenarios/default.toml --listen 127.0.0.1:8443 \\\n"
      "    --cert cert.pem --key key.pem --state /tmp/cloud --boot 'boot-node.sh'");
  serve_app->add_option("--scenario", options.scenario, "TOML file: offers, prices, faults")
      ->required();
  serve_app->add_option("--listen", options.listen, "ADDRESS:PORT of the API; port 0: any")
      ->capture_default_str();
  serve_app->add_option(
      "--metadata", options.metadata, "ADDRESS:PORT of the metadata [the API's address, any port]");
  serve_app->add_option(
      "--advertise", options.advertise, "host name in URLs [the address of --listen]");
  serve_app->add_option("--cert", options.cert, "certificate, PEM")->required();
  serve_app->add_option("--key", options.key, "its private key, PEM")->required();
  serve_app->add_option("--state", options.state, "folder for logs, objects and the control socket")
      ->required();
  serve_app->add_option(
      "--api-key-file", options.api_key_file, "the bearer key of callers [any will do]");
  serve_app->add_option("--boot", options.boot, "shell command that is an instance");
  serve_app->add_option("--destroy", options.destroy, "shell command that cuts its power");
  serve_app->callback([&] { command = [&options] { return serve(options); }; });
}

struct ClientCommand {
  const char* name;
  const char* help;
  const char* example;
  Status (*run)(const ClientOptions&);
};

CLI::App* add_client(CLI::App& app,
                     const ClientCommand& row,
                     ClientOptions& options,
                     Command& command) {
  CLI::App* client = app.add_subcommand(row.name, row.help);
  client->footer(std::string("Example:\n  ") + row.example);
  client->add_option("--state", options.state, "state folder of the server")->required();
  client->add_flag("--json", options.json, "JSON on stdout");
  client->callback(
      [&command, &options, run = row.run] { command = [&options, run] { return run(options); }; });
  return client;
}

void add_clients(CLI::App& app, ClientOptions& options, Command& command) {
  CLI::App* taker = add_client(app,
                               {"take",
                                "take an instance back, as a spot market does",
                                "cloudsim take i-3f9a1c02 --notice 30 --state /tmp/cloud",
                                take},
                               options,
                               command);
  taker->add_option("instance", options.instance_id, "instance id")->required();
  taker->add_option("--notice", options.notice_s, "seconds of warning [none]")
      ->check(CLI::Range(0.0, 86400.0));
  for (const ClientCommand& row : {ClientCommand{"instances",
                                                 "list everything that was rented",
                                                 "cloudsim instances --json --state /tmp/cloud",
                                                 show_instances},
                                   ClientCommand{"bill",
                                                 "what was rented, for how long, at what cost",
                                                 "cloudsim bill --state /tmp/cloud",
                                                 show_bill},
                                   ClientCommand{"events",
                                                 "what happened to instances",
                                                 "cloudsim events --state /tmp/cloud",
                                                 show_events}}) {
    add_client(app, row, options, command);
  }
}

void add_faults(CLI::App& app, ClientOptions& options, Command& command) {
  CLI::App* fault = app.add_subcommand("fault", "make calls and boots go wrong");
  fault->footer("Example:\n  cloudsim fault list --state /tmp/cloud");
  fault->require_subcommand(1);
  CLI::App* add =
      add_client(*fault,
                 {"add",
                  "put a rule in force; its times count from now",
                  "cloudsim fault add storm --kind error --status 429 --code "
                  "rate_limited \\\n    --path '/v1/gpu/*' --until-s 60 --state /tmp/cloud",
                  add_fault},
                 options,
                 command);
  add->add_option("name", options.fault_name, "name of the rule")->required();
  add_flags(*add, flags_of(fault_settings()), options.rule);
  add_client(*fault,
             {"list", "the rules in force", "cloudsim fault list --state /tmp/cloud", list_faults},
             options,
             command);
  CLI::App* remove = add_client(*fault,
                                {"remove",
                                 "take a rule out, or all",
                                 "cloudsim fault remove storm --state /tmp/cloud",
                                 remove_fault},
                                options,
                                command);
  remove->add_option("name", options.fault_name, "name of the rule [all]");
}

}  // namespace

int run_command(int argc, char** argv) {
  CLI::App app("A cloud that rents GPU nodes, simulated.", "cloudsim");
  app.require_subcommand(1);
  app.footer("Example:\n  cloudsim serve --help");
  ServeOptions serve_options;
  ClientOptions client_options;
  Command command;
  add_serve(app, serve_options, command);
  add_clients(app, client_options, command);
  add_faults(app, client_options, command);
  CLI::App* keys = app.add_subcommand("keys", "every key of a scenario file");
  keys->footer("Example:\n  cloudsim keys");
  keys->add_flag("--json", client_options.json, "JSON on stdout");
  keys->callback([&] { command = [&client_options] { return show_keys(client_options); }; });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const auto done = command(); !done) {
    fmt::print(stderr, "cloudsim: {}\n", done.error().message);
    return 1;
  }
  return 0;
}

}  // namespace acb::sim

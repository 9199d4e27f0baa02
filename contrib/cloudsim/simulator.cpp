// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/simulator.h"

#include "cloudsim/render.h"

#include <spdlog/spdlog.h>

namespace acb::sim {

namespace {

constexpr std::chrono::milliseconds kTurn{20};
constexpr std::chrono::seconds kShutdownLimit{30};

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
}

}  // namespace

std::string fill_user_data(std::string text,
                           const std::string& metadata_url,
                           const std::string& instance_id) {
  replace_all(text, "${METADATA_URL}", metadata_url);
  replace_all(text, "${INSTANCE_ID}", instance_id);
  return text;
}

Result<std::unique_ptr<Simulator>> Simulator::open(Scenario scenario,
                                                   const std::filesystem::path& state,
                                                   std::string metadata_url,
                                                   Guard& guard) {
  ACB_TRY(make_folders(state / "instances"));
  std::vector<Journal> journals;
  for (const char* name : {"requests.jsonl", "bill.jsonl", "events.jsonl"}) {
    ACB_TRY_ASSIGN(Journal journal, Journal::open(state / name));
    journals.push_back(std::move(journal));
  }
  return std::unique_ptr<Simulator>(new Simulator(
      std::move(scenario), state, std::move(metadata_url), guard, std::move(journals)));
}

Simulator::Simulator(Scenario scenario,
                     std::filesystem::path state,
                     std::string metadata_url,
                     Guard& guard,
                     std::vector<Journal> journals)
    : scenario_(std::move(scenario)),
      state_(std::move(state)),
      metadata_url_(std::move(metadata_url)),
      requests_(std::move(journals[0])),
      bill_(std::move(journals[1])),
      events_(std::move(journals[2])),
      fleet_(scenario_, wall_now()),
      faults_(scenario_.seed),
      children_(guard) {
  for (const FaultRule& rule : scenario_.faults) {
    faults_.add(rule, fleet_.start());
  }
  thread_ = std::thread([this] { run(); });
}

Simulator::~Simulator() {
  shutdown();
}

IdempotencyStore& Simulator::keys(Keyspace space) {
  return space == Keyspace::jobs ? job_keys_ : allocation_keys_;
}

IdempotencyStore::Claim Simulator::claim(Keyspace space,
                                         const std::string& key,
                                         const std::string& body) {
  const auto is_gone = [&](const std::string& made) {
    const Allocation* allocation = fleet_.find(made);
    return allocation == nullptr || allocation->status() == AllocationStatus::released;
  };
  std::unique_lock lock(mutex_);
  while (true) {
    auto claim = keys(space).claim(key, body, wall_now(), is_gone);
    if (claim.verdict != IdempotencyStore::Verdict::in_flight) {
      return claim;
    }
    changed_.wait(lock);
  }
}

void Simulator::complete(Keyspace space,
                         const std::string& key,
                         std::string made,
                         std::string reply) {
  const std::scoped_lock lock(mutex_);
  keys(space).complete(key, std::move(made), std::move(reply), wall_now());
  changed_.notify_all();
}

void Simulator::abandon(Keyspace space, const std::string& key) {
  const std::scoped_lock lock(mutex_);
  keys(space).abandon(key);
  changed_.notify_all();
}

void Simulator::pause(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::unique_lock lock(mutex_);
  while (!stopping_ && changed_.wait_until(lock, end) != std::cv_status::timeout) {
  }
}

Json Simulator::bill() {
  const std::scoped_lock lock(mutex_);
  Json lines = Json::array();
  for (const Allocation& allocation : fleet_.all()) {
    for (const Instance& instance : allocation.instances) {
      lines.push_back(bill_line(allocation, instance, wall_now()));
    }
  }
  return lines;
}

void Simulator::shutdown() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Simulator::run() {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  while (true) {
    const bool all_gone = turn();
    std::unique_lock lock(mutex_);
    if (stopping_ && !deadline) {
      deadline = std::chrono::steady_clock::now() + kShutdownLimit;
      fleet_.release_all(wall_now());
      continue;
    }
    if (deadline && (all_gone || std::chrono::steady_clock::now() >= *deadline)) {
      return;
    }
    const auto next = std::chrono::steady_clock::now() + kTurn;
    while (!(stopping_ && !deadline) &&
           changed_.wait_until(lock, next) != std::cv_status::timeout) {
    }
  }
}

// Whether nothing is rented and nothing runs.
bool Simulator::turn() {
  std::deque<FleetCommand> commands;
  {
    const std::scoped_lock lock(mutex_);
    fleet_.advance(wall_now());
    commands = fleet_.take_commands();
    write_events();
  }
  for (const FleetCommand& command : commands) {
    carry_out(command);
  }
  for (const ChildEvent& event : children_.poll()) {
    apply(event);
  }
  const std::scoped_lock lock(mutex_);
  write_events();
  for (const Allocation& allocation : fleet_.all()) {
    for (const Instance& instance : allocation.instances) {
      if (!instance.is_gone()) {
        return false;
      }
    }
  }
  return children_.empty();
}

void Simulator::carry_out(const FleetCommand& command) {
  if (command.kind == FleetCommand::Kind::destroy) {
    children_.destroy(command.instance_id);
    return;
  }
  if (const auto started = start_instance(command.instance_id); !started) {
    spdlog::error("boot {}: {}", command.instance_id, started.error().message);
    const std::scoped_lock lock(mutex_);
    fleet_.exited(command.instance_id, 127, wall_now());
  }
}

Status Simulator::start_instance(const std::string& instance_id) {
  const std::filesystem::path folder = state_ / "instances" / instance_id;
  ACB_TRY(make_folders(folder));
  ChildSpec child;
  child.log_file = folder / "output.log";
  std::string user_data;
  bool is_job = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto [allocation, instance] = fleet_.find_instance(instance_id);
    is_job = allocation->job.has_value();
    user_data = allocation->user_data;
    child.command = is_job ? allocation->job->request.command : scenario_.boot_command;
    child.environment = {{"CLOUDSIM_INSTANCE_ID", instance_id},
                         {"CLOUDSIM_GPU_TYPE", allocation->offer->gpu_type},
                         {"CLOUDSIM_GPUS", std::to_string(instance->gpus)}};
    if (child.command.empty() || is_job) {
      fleet_.booted(instance_id, "127.0.0.1", wall_now());
    }
  }
  if (child.command.empty()) {
    return {};
  }
  const std::string metadata_url = metadata_url_ + "/" + instance_id;
  child.environment["CLOUDSIM_METADATA_URL"] = metadata_url;
  child.environment["CLOUDSIM_USER_DATA"] = folder / "user-data";
  child.environment["AUTO_CLOUD_API_KEY"] = std::nullopt;
  // The user data may hold a secret.
  ACB_TRY(write_file(
      folder / "user-data", fill_user_data(std::move(user_data), metadata_url, instance_id), 0600));
  if (!is_job) {
    child.address_file = folder / "address";
    child.destroy_command = scenario_.destroy_command;
    child.environment["CLOUDSIM_ADDRESS_FILE"] = child.address_file;
  }
  return children_.start(instance_id, std::move(child));
}

void Simulator::apply(const ChildEvent& event) {
  const std::scoped_lock lock(mutex_);
  switch (event.kind) {
    case ChildEvent::Kind::address:
      fleet_.booted(event.instance_id, event.address, wall_now());
      break;
    case ChildEvent::Kind::exited:
      fleet_.exited(event.instance_id, event.exit_code, wall_now());
      break;
    case ChildEvent::Kind::destroyed:
      fleet_.destroyed(event.instance_id, wall_now());
      break;
  }
}

void Simulator::write_events() {
  for (const FleetEvent& event : fleet_.take_events()) {
    Json line = {{"at", format_time(event.at)},
                 {"event", event.event},
                 {"allocation_id", event.allocation_id}};
    if (!event.instance_id.empty()) {
      line["instance_id"] = event.instance_id;
    }
    if (!event.detail.empty()) {
      line["detail"] = event.detail;
    }
    events_.append(line);
    // A failure bills nothing, also for those of its instances that were billed before.
    const Allocation* allocation = fleet_.find(event.allocation_id);
    for (const Instance& instance : allocation->instances) {
      const bool ended = instance.instance_id == event.instance_id || event.event == "failed";
      if (ended && instance.is_gone()) {
        bill_.append(bill_line(*allocation, instance, event.at));
      }
    }
  }
}

}  // namespace acb::sim

// SPDX-License-Identifier: Apache-2.0
// What others ask of the reconciler: the control socket and the join service.
#include "cloudburst/daemon/reconciler.h"
#include "cloudburst/plan/outcomes.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <limits>

namespace acb::cloud {

namespace {

constexpr std::chrono::seconds kJoinPatience{5};
constexpr std::size_t kMostPrologs = 10000;

Result<std::uint32_t> job_in(const Json& request) {
  const auto job = json_or<std::int64_t>(request, "job", -1);
  if (job < 0 || job > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorCode::invalid, "control: job: must be a job id");
  }
  return static_cast<std::uint32_t>(job);
}

}  // namespace

Json Reconciler::answer(const Json& request, const Peer& peer) {
  const std::string op = json_or<std::string>(request, "op", "");
  const Asker asker{peer.uid, peer.uid == 0 || peer.uid == geteuid()};
  if ((op == "poke" || op == "prolog") && !asker.sees_all) {
    return error_reply({ErrorCode::denied, "control: op '" + op + "': for Slurm's hooks alone"});
  }
  if (op == "poke") {
    slurm_->look();
    mailbox_->wake();
    return Json::object();
  }
  if (op == "prolog") {
    return prolog(request);
  }
  std::shared_ptr<const Snapshot> snapshot;
  {
    const std::lock_guard lock(snapshot_mutex_);
    snapshot = snapshot_;
  }
  const auto user_name = [this](uid_t uid) { return names_.name_of(uid); };
  if (op == "status") {
    std::optional<std::uint32_t> job;
    if (request.contains("job") && !request["job"].is_null()) {
      const auto id = job_in(request);
      if (!id) {
        return error_reply(id.error());
      }
      job = *id;
    }
    const auto status = status_answer(*snapshot, job, asker, user_name);
    return status ? *status : error_reply(status.error());
  }
  if (op == "leases") {
    return leases_answer(*snapshot, asker, user_name);
  }
  if (op == "nodes") {
    return nodes_answer(*snapshot, asker);
  }
  if (op == "close" && asker.sees_all) {
    return close(json_or<std::string>(request, "lease", ""), *snapshot);
  }
  if (op == "close") {
    return error_reply({ErrorCode::denied, "control: op 'close': for root and SlurmUser alone"});
  }
  return error_reply(
      {ErrorCode::invalid,
       "control: op '" + op + "': must be one of poke, prolog, status, leases, nodes, close"});
}

Json Reconciler::close(const std::string& key, const Snapshot& snapshot) {
  if (const auto closed = closed_by_hand(snapshot.book, key, wall_now()); !closed) {
    return error_reply(closed.error());
  }
  mailbox_->post([this, key] {
    const WallTime now = wall_now();
    const auto closed = closed_by_hand(book_, key, now);
    if (!closed) {
      return;  // it has gone on meanwhile
    }
    Changes changes;
    changes.leases.push_back(*closed);
    changes.events.push_back(
        {now, closed->made_for.job, closed->node, "closed by hand: " + closed->error});
    static_cast<void>(save(changes));
  });
  return {{"lease", key}};
}

Json Reconciler::prolog(const Json& request) {
  const auto job = job_in(request);
  if (!job) {
    return error_reply(job.error());
  }
  const auto restart = json_or<std::int64_t>(request, "restart", -1);
  std::shared_ptr<const Snapshot> snapshot;
  WallTime asked;
  {
    const std::lock_guard lock(snapshot_mutex_);
    snapshot = snapshot_;
    if (prologs_.size() > kMostPrologs) {
      prologs_.clear();
    }
    const auto [entry, is_new] = prologs_.emplace(*job, wall_now());
    asked = entry->second;
    if (is_new) {
      slurm_->look();
      mailbox_->wake();
    }
  }
  Json reply = prolog_answer(*snapshot, *job, restart, asked);
  if (json_or<bool>(reply, "go", false)) {
    const std::lock_guard lock(snapshot_mutex_);
    prologs_.erase(*job);
  }
  return reply;
}

Result<JoinGrant> Reconciler::join(const JoinRequest& request) {
  // The secret is used up in the ledger before the key is handed out.
  auto promise = std::make_shared<std::promise<Result<JoinGrant>>>();
  auto future = promise->get_future();
  mailbox_->post([this, request, promise] { promise->set_value(grant(request)); });
  if (future.wait_for(kJoinPatience) != std::future_status::ready) {
    return fail(ErrorCode::unavailable, "join: the daemon is busy");
  }
  return future.get();
}

Result<JoinGrant> Reconciler::grant(const JoinRequest& request) {
  const WallTime now = wall_now();
  ACB_TRY_ASSIGN(const Lease* asked_for, admission_.lease_for(request, book_, now));
  const Lease lease = *asked_for;
  Changes changes;
  changes.leases.push_back(lease);
  changes.leases.front().secret_sha256.clear();
  changes.events.push_back({now,
                            lease.owner.job,
                            lease.node,
                            "joined from " + request.address + " as " + request.instance});
  JoinGrant granted{lease.node, config_.cluster, "", munge_key_};
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) {
    granted.conf_server = host.data();
  }
  if (!save(changes)) {
    return fail(ErrorCode::unavailable, "join: the ledger cannot be written");
  }
  admission_.let_in(lease, request, now);
  return granted;
}

}  // namespace acb::cloud

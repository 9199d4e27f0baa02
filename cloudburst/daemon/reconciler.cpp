// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/reconciler.h"

#include "cloudburst/daemon/inbox.h"
#include "cloudburst/plan/outcomes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace acb::cloud {

namespace {

using std::chrono::milliseconds;

/// Between looks at Slurm: a node that has registered lets its job start within this.
constexpr milliseconds kQuick{200};
constexpr milliseconds kIdle{2000};
/// What Slurm refused is not asked again before this.
constexpr std::chrono::seconds kRefusedRest{5};
/// Closed leases and ended bursts stay in memory, and so in status, for this long.
constexpr std::chrono::hours kRemembered{24 * 7};
/// And in the ledger, with what happened, for this long.
constexpr std::chrono::hours kKept{24 * 90};
constexpr std::chrono::hours kPruneAgain{24};
/// A clock that is set by less than this is as good as one that runs a little fast or slow.
constexpr milliseconds kClockStep{2000};
/// All that was ever rented is listed this often; what is new comes on the first page.
constexpr std::chrono::seconds kListAll{60};
constexpr int kMostRounds = 20;
/// Between attempts to write a ledger that cannot be written, and between lines that say so.
constexpr std::chrono::seconds kWriteAgain{5};
constexpr std::chrono::seconds kTellAgain{60};

}  // namespace

Reconciler::Reconciler(Config config, Policy policy, Ledger ledger, Provider provider)
    : config_(std::move(config)),
      policy_(std::move(policy)),
      ledger_(std::move(ledger)),
      provider_(std::make_shared<const Provider>(std::move(provider))) {}

Reconciler::~Reconciler() {
  workers_.stop(milliseconds(300));
  if (slurm_) {
    slurm_->stop(milliseconds(300));
  }
}

Status Reconciler::start(SlurmClient client, JoinPlace join, std::string munge_key) {
  join_place_ = std::move(join);
  munge_key_ = std::move(munge_key);
  ACB_TRY(load_book());
  publish();
  slurm_ = std::make_unique<SlurmLink>(
      std::move(client), config_.twins, [this, mailbox = mailbox_](SlurmLink::Seen seen) {
        mailbox->post([this, seen = std::move(seen)]() mutable { take_picture(std::move(seen)); });
      });
  return {};
}

void Reconciler::stop() {
  stopping_ = true;
  mailbox_->wake();
}

void Reconciler::run() {
  while (!stopping_) {
    for (const Mailbox::Letter& letter : mailbox_->take(moving_ ? kQuick : kIdle)) {
      letter();
    }
    round();
  }
}

void Reconciler::round() {
  if (std::chrono::steady_clock::now() >= write_again_) {
    follow_clock();
    prune();
    take_orders();
    decide();
  }
  if (std::exchange(changed_, false)) {
    publish();
  }
  slurm_->set_period(moving_ ? kQuick : kIdle);
}

double Reconciler::jitter() {
  return std::uniform_real_distribution<>(0, 1)(random_);
}

bool Reconciler::save(const Changes& changes) {
  if (changes.empty()) {
    book_.apply(changes);
    changed_ = changed_ || !changes.figures.empty();
    return true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (const auto saved = ledger_.save(changes); !saved) {
    if (now >= tell_again_) {
      spdlog::error("{}; until it can be written, nothing is rented and only given back",
                    saved.error().message);
      tell_again_ = now + kTellAgain;
    }
    if (now >= write_again_) {
      write_again_ = now + kWriteAgain;
    }
    return false;
  }
  write_again_ = {};
  for (const Event& event : changes.events) {
    spdlog::info("job {} {}: {}", event.job, event.node, event.text);
  }
  book_.apply(changes);
  changed_ = true;
  return true;
}

Status Reconciler::load_book() {
  const WallTime now = wall_now();
  ACB_TRY_ASSIGN(book_, ledger_.load(now - kRemembered));
  if (const WallTime newest = book_.newest(); newest > now) {
    book_.move_times(now - newest);
  }
  return {};
}

void Reconciler::follow_clock() {
  const WallTime wall = wall_now();
  const auto steady = std::chrono::steady_clock::now();
  const auto step =
      std::chrono::duration_cast<milliseconds>((wall - wall_seen_) - (steady - steady_seen_));
  wall_seen_ = wall;
  steady_seen_ = steady;
  if (std::chrono::abs(step) < kClockStep) {
    return;
  }
  spdlog::warn("the clock was set by {} s", step.count() / 1000);
  book_.move_times(step);
  // Pictures are of the time before.
  picture_.reset();
  cloud_ = {};
  unowned_.clear();
  for (auto& [subject, until] : resting_) {
    until = wall;
  }
  changed_ = true;
  {
    const std::lock_guard lock(snapshot_mutex_);
    prologs_.clear();
  }
  slurm_->look();
}

void Reconciler::prune() {
  const auto now = std::chrono::steady_clock::now();
  if (pruned_ && now - *pruned_ < kPruneAgain) {
    return;
  }
  pruned_ = now;
  const Status pruned = ledger_.prune(wall_now() - kKept);
  const Status loaded = load_book();
  for (const Status& done : {pruned, loaded}) {
    if (!done) {
      spdlog::error("{}", done.error().message);
    }
  }
}

void Reconciler::take_orders() {
  auto inbox = read_orders(config_.inbox());
  if (!inbox) {
    spdlog::error("{}", inbox.error().message);
    return;
  }
  if (!inbox->unread.empty() && inbox->unread != unread_) {
    spdlog::error("inbox: {}; left for later", inbox->unread);
  }
  unread_ = inbox->unread;
  Changes changes;
  changes.orders = std::move(inbox->orders);
  if (!changes.orders.empty() && save(changes)) {
    if (const auto removed = remove_orders(config_.inbox(), changes.orders); !removed) {
      spdlog::error("{}", removed.error().message);
    }
    slurm_->look();
  }
}

void Reconciler::take_picture(SlurmLink::Seen seen) {
  const WallTime now = wall_now();
  if (!seen.picture) {
    if (std::exchange(slurm_answers_, false)) {
      spdlog::error("{}", seen.picture.error().message);
    }
    return;
  }
  slurm_answers_ = true;
  picture_ = std::move(*seen.picture);
  changed_ = true;
  for (const Call& call : seen.done) {
    busy_.erase(call.subject());
  }
  for (const Call& call : seen.refused) {
    resting_[call.subject()] = now + kRefusedRest;
  }
  std::map<std::string, WallTime> unowned;
  for (const SlurmNode& node : picture_->nodes) {
    if (!node.allocated) {
      const auto known = unowned_.find(node.name);
      unowned.emplace(node.name, known == unowned_.end() ? now : known->second);
    }
  }
  unowned_ = std::move(unowned);
}

void Reconciler::decide() {
  for (int i = 0; i < kMostRounds; ++i) {
    const WallTime now = wall_now();
    for (auto entry = resting_.begin(); entry != resting_.end();) {
      if (entry->second <= now) {
        busy_.erase(entry->first);
        entry = resting_.erase(entry);
      } else {
        ++entry;
      }
    }
    book_.forget(now - kRemembered);
    const View view{
        &book_, picture_ ? &*picture_ : nullptr, &cloud_, &busy_, &unowned_, now, jitter()};
    Plan next = plan(view, policy_);
    cloud_.list_is_new = cloud_.list_is_new && !picture_;
    moving_ = next.moving;
    compose(next.changes);
    const bool changed = !next.changes.empty();
    const bool saved = save(next.changes);
    for (Call& call : next.calls) {
      if (saved || may_go_unwritten(call.kind)) {
        dispatch(std::move(call));
      }
    }
    if (!saved || !changed) {
      return;
    }
  }
}

void Reconciler::compose(Changes& changes) {
  for (Lease& lease : changes.leases) {
    if (lease.state != LeaseState::wanted || !lease.request.empty()) {
      continue;
    }
    WallTime ends = lease.deadline;
    if (picture_) {
      for (const SlurmJob& job : picture_->jobs) {
        if (job.id == lease.made_for.job) {
          ends += job.time_limit;
        }
      }
    }
    if (const auto composed = compose_request(lease, config_, join_place_, ends); !composed) {
      lease.state = LeaseState::gone;
      lease.closed = wall_now();
      lease.error_class = ErrorClass::bad_request;
      lease.error = composed.error().message;
    }
  }
}

void Reconciler::dispatch(Call call) {
  busy_.insert(call.subject());
  if (call.is_slurm()) {
    slurm_->add(std::move(call));
  } else {
    call_cloud(call);
  }
}

template <typename Answer, typename Work, typename Then>
void Reconciler::in_worker(const Call& call, Work work, Then then) {
  // The worker may outlive this object where the call hangs: it holds what it needs itself.
  workers_.add([this, call, work, then, provider = provider_, mailbox = mailbox_] {
    auto answer = std::make_shared<CloudResult<Answer>>(work(*provider));
    mailbox->post([this, call, then, answer] {
      busy_.erase(call.subject());
      if (!*answer) {
        const std::string of = call.key.empty() ? "" : " " + call.key;
        spdlog::warn("cloud: {}{}: {}", name_of(call.kind), of, describe(answer->error()));
      }
      then(*answer);
    });
  });
}

void Reconciler::settle(const Call& call, const std::function<Lease(Lease)>& change) {
  const auto old = book_.leases.find(call.key);
  if (old == book_.leases.end()) {
    return;
  }
  Changes changes;
  changes.add(old->second, change(old->second));
  static_cast<void>(save(changes));  // unwritten, it is looked up again
}

template <typename Answer, typename Work, typename After>
void Reconciler::for_lease(const Call& call, Work work, After after) {
  in_worker<Answer>(call, work, [this, call, after](const CloudResult<Answer>& answer) {
    settle(call, [&](Lease old) { return after(std::move(old), answer, wall_now(), jitter()); });
  });
}

void Reconciler::call_cloud(const Call& call) {
  const WallTime asked = wall_now();
  const std::string key = call.key;
  const std::string id = call.text;
  switch (call.kind) {
    case CallKind::create:
      for_lease<Allocation>(
          call,
          [key, body = book_.leases.at(key).request](const Provider& p) {
            return p.allocate(body, key);
          },
          after_create);
      break;
    case CallKind::look_up:
      for_lease<std::optional<Allocation>>(
          call, [key](const Provider& p) { return p.find_by_key(key); }, after_look_up);
      break;
    case CallKind::get:
      for_lease<Allocation>(
          call, [id](const Provider& p) { return p.get(id); }, after_get);
      break;
    case CallKind::release:
      for_lease<Provider::Released>(
          call, [id](const Provider& p) { return p.release(id); }, after_release);
      break;
    case CallKind::list: {
      const auto now = std::chrono::steady_clock::now();
      const bool all = !listed_all_ || now - *listed_all_ >= kListAll;
      cloud_.list_asked = asked;
      in_worker<std::vector<Allocation>>(
          call,
          [tag = "cluster:" + config_.cluster, all](const Provider& p) {
            return p.list(tag, all ? Provider::Pages::all : Provider::Pages::first);
          },
          [this, asked, all, now](const CloudResult<std::vector<Allocation>>& answer) {
            if (answer) {
              cloud_.listed = *answer;
              cloud_.listed_at = asked;
              cloud_.list_is_new = true;
              if (all) {
                listed_all_ = now;
              }
            }
          });
      break;
    }
    case CallKind::offers:
      cloud_.offers_asked = asked;
      in_worker<std::vector<Offer>>(
          call,
          [](const Provider& p) { return p.offers(""); },
          [this](const CloudResult<std::vector<Offer>>& answer) {
            if (answer) {
              cloud_.offers = *answer;
              cloud_.offers_at = wall_now();
              cloud_.offers_failed = 0;
              cloud_.offers_error.reset();
            } else {
              ++cloud_.offers_failed;
              cloud_.offers_error = answer.error();
            }
          });
      break;
    default:
      break;
  }
}

void Reconciler::publish() {
  names_.learn(0);
  for (const auto& [id, burst] : book_.bursts) {
    names_.learn(burst.uid);
  }
  // Without the attempts: they are many, and nobody asks for them.
  auto snapshot = std::make_shared<const Snapshot>(Snapshot{
      {.leases = book_.leases, .bursts = book_.bursts, .orders = {}, .attempts = {}}, picture_});
  const std::lock_guard lock(snapshot_mutex_);
  snapshot_ = std::move(snapshot);
}

}  // namespace acb::cloud

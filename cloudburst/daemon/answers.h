// SPDX-License-Identifier: Apache-2.0
// What the daemon says of itself over the control socket, from memory alone. Pure.
#pragma once

#include "base/json.h"
#include "cloudburst/ledger/ledger.h"
#include "cloudburst/plan/view.h"

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace acb::cloud {

/// Everything that answers are made from, as of the last decision.
struct Snapshot {
  Book book;
  std::optional<SlurmPicture> slurm;
};

/// Who asks. Users see their own jobs; root and the daemon's user see all.
struct Asker {
  uid_t uid = 0;
  bool sees_all = false;
  [[nodiscard]] bool sees(uid_t owner) const { return sees_all || owner == uid; }
};
using UserName = std::function<std::string(uid_t)>;

/// {"bursts": [...]}, of one job or all. `not_found` for a job that is unknown or somebody else's.
[[nodiscard]] Result<Json> status_answer(const Snapshot& snapshot,
                                         std::optional<std::uint32_t> job,
                                         const Asker& asker,
                                         const UserName& name_of_user);
[[nodiscard]] Json leases_answer(const Snapshot& snapshot,
                                 const Asker& asker,
                                 const UserName& name_of_user);
[[nodiscard]] Json nodes_answer(const Snapshot& snapshot, const Asker& asker);

/// {"go", "restart"}: whether PrologSlurmctld may return for the job: once none of its nodes boots
/// and each rented one has a lease that serves this start of it, a node that was on before
/// included. `asked` is when it first asked: an older picture may not show yet that the job has its
/// nodes.
[[nodiscard]] Json prolog_answer(const Snapshot& snapshot,
                                 std::uint32_t job,
                                 std::int64_t restart,
                                 WallTime asked);

}  // namespace acb::cloud

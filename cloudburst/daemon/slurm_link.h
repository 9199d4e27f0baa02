// SPDX-License-Identifier: Apache-2.0
// Slurm at arm's length: one thread that carries out calls, then looks again, and may hang without
// anybody else hanging with it. A call counts as under way until a picture that began after it has
// arrived, so that no decision is made twice from an old picture.
#pragma once

#include "cloudburst/daemon/worker_pool.h"
#include "cloudburst/plan/plan.h"
#include "cloudburst/slurm/slurm_client.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace acb::cloud {

class SlurmLink {
 public:
  struct Seen {
    Result<SlurmPicture> picture;
    std::vector<Call> done;     ///< of which the picture shows the effect
    std::vector<Call> refused;  ///< that Slurm did not do
  };
  /// `twins`: partition to its burst twin, compared once. `seen` is called on the link's thread.
  SlurmLink(SlurmClient client,
            std::map<std::string, std::string> twins,
            std::function<void(Seen)> seen);
  ~SlurmLink();
  SlurmLink(const SlurmLink&) = delete;
  SlurmLink& operator=(const SlurmLink&) = delete;

  void add(Call call);
  /// Looks at once.
  void look();
  /// How long to wait between looks.
  void set_period(std::chrono::milliseconds period);
  bool stop(std::chrono::milliseconds patience);

 private:
  struct State;
  static void serve(State& state);
  std::shared_ptr<State> state_;
};

}  // namespace acb::cloud

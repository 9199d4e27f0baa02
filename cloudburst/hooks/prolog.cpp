// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/hooks/prolog.h"

#include <algorithm>

namespace acb::cloud {

PrologEnd wait_for_go(PrologWait wait, const PrologWorld& world) {
  using std::chrono::milliseconds;
  constexpr milliseconds kAnswerLimit{1000};
  milliseconds last_answer = world.now();
  while (true) {
    const milliseconds left = last_answer + kPrologPatience - world.now();
    if (left <= milliseconds(0)) {
      return PrologEnd::no_daemon;
    }
    const auto reply = world.ask({{"op", "prolog"}, {"job", wait.job}, {"restart", wait.restart}},
                                 std::min(left, kAnswerLimit));
    if (reply && reply->contains("go")) {
      if (json_or<bool>(*reply, "go", false)) {
        return PrologEnd::go;
      }
      wait.restart = json_or<std::int64_t>(*reply, "restart", wait.restart);
      last_answer = world.now();
    }
    world.sleep(kPrologInterval);
  }
}

}  // namespace acb::cloud

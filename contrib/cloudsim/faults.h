// SPDX-License-Identifier: Apache-2.0
// What goes wrong, with which calls and boots. Time is an argument; not thread-safe.
#pragma once

#include "base/settings.h"
#include "base/text.h"
#include "cloudsim/random.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acb::sim {

enum class FaultKind {
  error,        ///< refused with an error reply; nothing happens
  error_after,  ///< carried out, then answered with an error reply
  drop,         ///< connection closed before anything happens
  lose_reply,   ///< carried out, then connection closed
  slow,         ///< carried out, then answered after delay_s
  garble,       ///< carried out, then answered with a body that is cut in half
  boot_never,   ///< an instance that stays booting for ever
  boot_fails,   ///< an instance whose boot fails, and its allocation with it
};
[[nodiscard]] std::string_view name_of(FaultKind kind);

/// One rule. A call is hit when all of it matches; times count from the start of the server, or
/// from the moment a rule was added to a running one.
struct FaultRule {
  std::string name;
  FaultKind kind = FaultKind::error;
  std::string method;         ///< empty: any
  std::string path = "*";     ///< '*' stands for any text; the query does not count
  std::string key = "*";      ///< of the call's, or the instance's, idempotency key; likewise
  double probability = 1;     ///< of each call that matches
  std::int64_t skip = 0;      ///< matching calls let through first
  std::int64_t count = 0;     ///< most hits; 0: no limit
  double after_s = 0;         ///< not before this
  double until_s = 0;         ///< not from this on; 0: no end
  std::int64_t status = 503;  ///< of an error reply
  std::string code = "unavailable";
  std::string message = "injected fault";
  std::int64_t retry_after_s = -1;  ///< Retry-After of an error reply; -1: none
  Distribution delay_s{Distribution::Shape::fixed, 5, 0};
};

/// The keys of a rule, for the scenario file and the command line alike.
[[nodiscard]] std::vector<Setting<FaultRule>> fault_settings();
/// Whether `text` is `pattern`, in which '*' stands for any text.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);

/// The rules in force, and how often each was met.
class FaultPlan {
 public:
  explicit FaultPlan(std::uint64_t seed) : seed_(seed) {}

  /// Puts a rule in force from `now` on; one of the same name is replaced.
  void add(FaultRule rule, WallTime now);
  /// Takes a rule out, or all of them when the name is empty. Returns how many.
  std::size_t remove(std::string_view name);
  /// The first rule that hits this call, if any; counts as a hit.
  [[nodiscard]] std::optional<FaultRule> on_call(std::string_view method,
                                                 std::string_view path,
                                                 std::string_view key,
                                                 WallTime now);
  /// The first boot rule that hits the next instance, if any; counts as a hit.
  [[nodiscard]] std::optional<FaultRule> on_boot(std::string_view key, WallTime now);

  struct Standing {
    FaultRule rule;
    WallTime since;
    std::int64_t met = 0;   ///< calls that matched
    std::int64_t hits = 0;  ///< calls that it was applied to
  };
  [[nodiscard]] const std::vector<Standing>& standing() const { return standing_; }

 private:
  [[nodiscard]] bool strikes(Standing& standing, WallTime now) const;

  std::uint64_t seed_;
  std::vector<Standing> standing_;
};

}  // namespace acb::sim

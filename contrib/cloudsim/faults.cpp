// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/faults.h"

#include "cloudsim/settings_rows.h"

#include <array>
#include <utility>

namespace acb::sim {

namespace {

constexpr std::array kKinds{std::pair{FaultKind::error, std::string_view("error")},
                            std::pair{FaultKind::error_after, std::string_view("error_after")},
                            std::pair{FaultKind::drop, std::string_view("drop")},
                            std::pair{FaultKind::lose_reply, std::string_view("lose_reply")},
                            std::pair{FaultKind::slow, std::string_view("slow")},
                            std::pair{FaultKind::garble, std::string_view("garble")},
                            std::pair{FaultKind::boot_never, std::string_view("boot_never")},
                            std::pair{FaultKind::boot_fails, std::string_view("boot_fails")}};

bool is_boot_kind(FaultKind kind) {
  return kind == FaultKind::boot_never || kind == FaultKind::boot_fails;
}

}  // namespace

std::string_view name_of(FaultKind kind) {
  for (const auto& [value, name] : kKinds) {
    if (value == kind) {
      return name;
    }
  }
  return "?";
}

std::vector<Setting<FaultRule>> fault_settings() {
  using R = FaultRule;
  constexpr std::int64_t kMost = 1'000'000'000;
  return {
      choice_setting("kind", &R::kind, kKinds, "what goes wrong"),
      text_setting("method", &R::method, "HTTP method of the calls; empty: any"),
      text_setting("path", &R::path, "path of the calls; * stands for any text"),
      text_setting("key", &R::key, "idempotency key of the calls and boots; * stands for any text"),
      number_setting("probability", &R::probability, 0, 1, "of each call that matches"),
      integer_setting("skip", &R::skip, 0, kMost, "matching calls let through first"),
      integer_setting("count", &R::count, 0, kMost, "most hits; 0: no limit"),
      number_setting("after_s", &R::after_s, 0, 1e9, "seconds: not before this"),
      number_setting("until_s", &R::until_s, 0, 1e9, "seconds: not from then on; 0: no end"),
      integer_setting("status", &R::status, 400, 599, "HTTP status of an error reply"),
      text_setting("code", &R::code, "error code of an error reply"),
      text_setting("message", &R::message, "message of an error reply"),
      integer_setting("retry_after_s", &R::retry_after_s, -1, kMost, "Retry-After; -1: none"),
      distribution_setting("delay_s", &R::delay_s, "of a slow reply: \"5\", \"1..9\", \"exp 3\"")};
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

void FaultPlan::add(FaultRule rule, WallTime now) {
  std::erase_if(standing_, [&](const Standing& old) { return old.rule.name == rule.name; });
  standing_.push_back({std::move(rule), now});
}

std::size_t FaultPlan::remove(std::string_view name) {
  return std::erase_if(standing_,
                       [&](const Standing& old) { return name.empty() || old.rule.name == name; });
}

bool FaultPlan::strikes(Standing& standing, WallTime now) const {
  const FaultRule& rule = standing.rule;
  const double elapsed = std::chrono::duration<double>(now - standing.since).count();
  if (elapsed < rule.after_s || (rule.until_s > 0 && elapsed >= rule.until_s)) {
    return false;
  }
  const std::int64_t met = standing.met++;
  if (met < rule.skip || (rule.count > 0 && standing.hits >= rule.count) ||
      random_unit(seed_, "fault " + rule.name, static_cast<std::uint64_t>(met)) >=
          rule.probability) {
    return false;
  }
  ++standing.hits;
  return true;
}

std::optional<FaultRule> FaultPlan::on_call(std::string_view method,
                                            std::string_view path,
                                            std::string_view key,
                                            WallTime now) {
  for (Standing& standing : standing_) {
    const FaultRule& rule = standing.rule;
    if (!is_boot_kind(rule.kind) && (rule.method.empty() || rule.method == method) &&
        matches(rule.path, path) && matches(rule.key, key) && strikes(standing, now)) {
      return rule;
    }
  }
  return std::nullopt;
}

std::optional<FaultRule> FaultPlan::on_boot(std::string_view key, WallTime now) {
  for (Standing& standing : standing_) {
    if (is_boot_kind(standing.rule.kind) && matches(standing.rule.key, key) &&
        strikes(standing, now)) {
      return standing.rule;
    }
  }
  return std::nullopt;
}

}  // namespace acb::sim

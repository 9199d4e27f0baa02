// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/ledger/records.h"

#include <array>
#include <utility>

namespace acb::cloud {

namespace {

constexpr std::array<std::pair<LeaseState, std::string_view>, 6> kLeaseStates{{
    {LeaseState::wanted, "wanted"},
    {LeaseState::creating, "creating"},
    {LeaseState::booting, "booting"},
    {LeaseState::up, "up"},
    {LeaseState::releasing, "releasing"},
    {LeaseState::gone, "gone"},
}};
constexpr std::array<std::pair<BurstState, std::string_view>, 4> kBurstStates{{
    {BurstState::open, "open"},
    {BurstState::started, "started"},
    {BurstState::failed, "failed"},
    {BurstState::ended, "ended"},
}};

template <typename Table, typename State>
std::string_view name_in(const Table& table, State state) {
  for (const auto& [value, name] : table) {
    if (value == state) {
      return name;
    }
  }
  return "unknown";
}

template <typename Table>
Result<typename Table::value_type::first_type> state_in(const Table& table, std::string_view text) {
  for (const auto& [value, name] : table) {
    if (name == text) {
      return value;
    }
  }
  return fail(ErrorCode::corrupt, "ledger: '" + std::string(text) + "': no such state");
}

}  // namespace

std::string_view name_of(LeaseState state) {
  return name_in(kLeaseStates, state);
}
Result<LeaseState> parse_lease_state(std::string_view text) {
  return state_in(kLeaseStates, text);
}
std::string_view name_of(BurstState state) {
  return name_in(kBurstStates, state);
}
Result<BurstState> parse_burst_state(std::string_view text) {
  return state_in(kBurstStates, text);
}

bool differs_in_figures_alone(const Lease& old, const Lease& next) {
  const bool goes_on = next.state == LeaseState::booting || next.state == LeaseState::up ||
                       next.state == LeaseState::releasing;
  if (!goes_on || old == next) {
    return false;
  }
  Lease same = old;
  same.checked = next.checked;
  same.billed_s = next.billed_s;
  same.cost = next.cost;
  same.tries = next.tries;
  same.next_try = next.next_try;
  return same == next;
}

}  // namespace acb::cloud

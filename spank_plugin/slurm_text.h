// SPDX-License-Identifier: Apache-2.0
// Texts and environments inside Slurm's structures, which slurmctld frees.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acb::spank {

/// The text, empty for none.
[[nodiscard]] std::string text_or_empty(const char* text);
/// Frees what `field` holds and puts a copy of `text` there.
void assign(char*& field, const std::string& text);
/// The entries as views; they die with the array.
[[nodiscard]] std::vector<std::string_view> entries_of(char** array, std::uint32_t size);
/// Takes every "name=..." out of an environment.
void remove_variable(char** array, std::uint32_t& size, std::string_view name);
/// Sets name=value, replacing what is there.
void set_variable(char**& array,
                  std::uint32_t& size,
                  std::string_view name,
                  const std::string& value);

}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
// The instruction set that oneDNN may use. Kernels for different sets round differently, so all
// ranks of a run use the lowest that any of them has.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace acb::train {

/// In ascending order: each has what the ones before it have.
enum class Isa { sse41 = 0, avx2 = 1, avx512 = 2, avx512_bf16 = 3, amx = 4 };

[[nodiscard]] std::string_view name_of(Isa isa);
/// The one of that name, or `invalid`.
[[nodiscard]] Result<Isa> parse_isa(std::string_view name);
/// The highest that this machine's processor has.
[[nodiscard]] Isa detect_isa();
/// What else rounding may depend on here: the processor's model, oneDNN and the C library.
[[nodiscard]] std::string device_model();
/// Holds oneDNN in this process to `isa`: once, before the first Ops is made. `unavailable` if
/// oneDNN has been used already with another, or cannot use `isa` here.
[[nodiscard]] Status set_isa(Isa isa);

}  // namespace acb::train

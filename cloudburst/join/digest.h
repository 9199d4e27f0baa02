// SPDX-License-Identifier: Apache-2.0
// The small cryptography of joining, over OpenSSL. Pure but for new_join_secret; thread-safe.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace acb::cloud {

/// A new one-time secret: 256 random bits in hexadecimal.
[[nodiscard]] std::string new_join_secret();
/// In lower-case hexadecimal.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
/// Equality in a time that depends on the lengths alone.
[[nodiscard]] bool same_text(std::string_view a, std::string_view b);

/// On one line.
[[nodiscard]] std::string to_base64(std::string_view bytes);
/// `corrupt` where it is not base64.
[[nodiscard]] Result<std::string> from_base64(std::string_view text);

}  // namespace acb::cloud

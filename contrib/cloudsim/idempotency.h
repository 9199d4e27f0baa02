// SPDX-License-Identifier: Apache-2.0
// Idempotency keys: which request a key stands for, and what it was answered. Time is an argument;
// not thread-safe.
#pragma once

#include "base/text.h"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace acb::sim {

inline constexpr std::chrono::hours kKeyLife{30 * 24};

class IdempotencyStore {
 public:
  enum class Verdict {
    fresh,      ///< carry it out, then call complete() or abandon()
    in_flight,  ///< another call with this key is being carried out: wait and ask again
    replay,     ///< answer with the first reply
    mismatch,   ///< the key was used for another body
    expired,    ///< what the key made is gone
  };
  struct Claim {
    Verdict verdict = Verdict::fresh;
    std::string made;   ///< the identifier of what the key made
    std::string reply;  ///< the body of the first 201
  };

  /// Claims a key for a request with this body. `is_gone` says whether what was made has been
  /// released.
  [[nodiscard]] Claim claim(const std::string& key,
                            const std::string& body,
                            WallTime now,
                            const std::function<bool(const std::string& made)>& is_gone);
  /// The claimed request was answered with 201: the reply is kept for 30 days.
  void complete(const std::string& key, std::string made, std::string reply, WallTime now);
  /// The claimed request was answered with an error: the key is as new.
  void abandon(const std::string& key);

 private:
  struct Entry {
    std::string body;
    bool in_flight = true;
    std::string made = {};
    std::string reply = {};
    WallTime at = {};
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace acb::sim

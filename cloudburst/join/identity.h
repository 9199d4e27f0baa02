// SPDX-License-Identifier: Apache-2.0
// The join service's key and self-signed certificate. They live as long as the daemon's state,
// since nodes that are still booting when the daemon restarts know the certificate from their user
// data.
#pragma once

#include "base/result.h"

#include <openssl/types.h>

#include <filesystem>
#include <memory>
#include <string>

namespace acb::cloud {

struct FreeCertificate {
  void operator()(X509* certificate) const;
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const;
};

struct JoinIdentity {
  std::unique_ptr<X509, FreeCertificate> certificate;
  std::unique_ptr<EVP_PKEY, FreeKey> key;
  std::string certificate_pem;
};

/// Reads key and certificate from the file (PEM, 0600), or makes them (ECDSA P-256, 20 years) and
/// writes it. `corrupt` where the file is there and holds something else.
[[nodiscard]] Result<JoinIdentity> load_or_make_identity(const std::filesystem::path& path);

}  // namespace acb::cloud

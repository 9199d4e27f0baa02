// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/join/identity.h"

#include "base/files.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include <cstdint>
#include <utility>

namespace acb::cloud {

namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

constexpr long kDay = 24L * 3600;

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

Result<std::string> certificate_pem(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1) {
    return fail(ErrorCode::internal, "join certificate: OpenSSL cannot write it");
  }
  return text_of(bio.get());
}

Result<JoinIdentity> make_identity() {
  JoinIdentity identity;
  identity.key.reset(EVP_EC_gen("P-256"));
  identity.certificate.reset(X509_new());
  X509* certificate = identity.certificate.get();
  std::int64_t serial = 0;
  if (!identity.key || certificate == nullptr ||
      RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) {
    return fail(ErrorCode::internal, "join certificate: OpenSSL cannot make a key");
  }
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial & INT64_MAX);
  // A node whose clock is behind has to be able to join far enough to be told so.
  X509_gmtime_adj(X509_getm_notBefore(certificate), -30L * kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 20L * 365 * kDay);
  X509_set_pubkey(certificate, identity.key.get());
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name,
                             "CN",
                             MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("autocloud-burst join service"),
                             -1,
                             -1,
                             0);
  X509_set_issuer_name(certificate, name);
  if (X509_sign(certificate, identity.key.get(), EVP_sha256()) == 0) {
    return fail(ErrorCode::internal, "join certificate: OpenSSL cannot sign it");
  }
  ACB_TRY_ASSIGN(identity.certificate_pem, certificate_pem(certificate));
  return identity;
}

Status save(const JoinIdentity& identity, const std::filesystem::path& path) {
  const Bio bio(BIO_new(BIO_s_secmem()));
  if (!bio || PEM_write_bio_PrivateKey(
                  bio.get(), identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return fail(ErrorCode::internal, "join certificate: OpenSSL cannot write the key");
  }
  std::string text = text_of(bio.get()) + identity.certificate_pem;
  auto written = write_file(path, text, 0600);
  OPENSSL_cleanse(text.data(), text.size());
  return written;
}

}  // namespace

void FreeCertificate::operator()(X509* certificate) const {
  X509_free(certificate);
}
void FreeKey::operator()(EVP_PKEY* key) const {
  EVP_PKEY_free(key);
}

Result<JoinIdentity> load_or_make_identity(const std::filesystem::path& path) {
  auto text = read_file(path, 65536);
  if (!text && text.error().code == ErrorCode::not_found) {
    ACB_TRY_ASSIGN(JoinIdentity made, make_identity());
    ACB_TRY(save(made, path));
    return made;
  }
  if (!text) {
    return fail_with("join certificate", text.error());
  }
  JoinIdentity identity;
  {
    const Bio bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
    identity.key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
    identity.certificate.reset(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  }
  OPENSSL_cleanse(text->data(), text->size());
  if (!identity.key || !identity.certificate ||
      X509_check_private_key(identity.certificate.get(), identity.key.get()) != 1) {
    return fail(ErrorCode::corrupt,
                "join certificate: " + path.string() +
                    ": holds no key with its certificate: remove it, and a new one is made");
  }
  ACB_TRY_ASSIGN(identity.certificate_pem, certificate_pem(identity.certificate.get()));
  return identity;
}

}  // namespace acb::cloud

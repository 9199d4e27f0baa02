// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/join/digest.h"

#include "base/text.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>

namespace acb::cloud {

namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string new_join_secret() {
  return random_hex(32);
}

std::string sha256_hex(std::string_view bytes) {
  std::array<char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(bytes.data(),
             bytes.size(),
             reinterpret_cast<unsigned char*>(digest.data()),
             &size,
             EVP_sha256(),
             nullptr);
  return to_hex({digest.data(), size});
}

bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_base64(std::string_view bytes) {
  // EVP_EncodeBlock also writes a final zero byte.
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     bytes_of(bytes),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

Result<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  const int length = text.size() % 4 != 0
                         ? -1
                         : EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                           bytes_of(text),
                                           static_cast<int>(text.size()));
  if (length < 0) {
    return fail(ErrorCode::corrupt, "base64: cannot be decoded");
  }
  // EVP_DecodeBlock counts the padding as zero bytes.
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with(std::string_view("==").substr(0, padding + 1))) {
    ++padding;
  }
  bytes.resize(static_cast<std::size_t>(length) - padding);
  return bytes;
}

}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/report/message.h"

#include "base/text.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

namespace acb::train {

namespace {

constexpr int kMostRanks = 1 << 20;

std::string hmac_hex(std::string_view secret, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned length = 0;
  HMAC(EVP_sha256(),
       secret.data(),
       static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()),
       text.size(),
       code.data(),
       &length);
  return to_hex({reinterpret_cast<const char*>(code.data()), length});
}

std::string_view name_of_kind(ClientKind kind) {
  return kind == ClientKind::rank ? "rank" : "agent";
}

// A node's name may hold anything a host name may; a line end would shift the fields that are
// signed.
bool plain(std::string_view text) {
  return !text.empty() && text.size() <= 255 && text.find('\n') == std::string_view::npos;
}

}  // namespace

std::string client_code(std::string_view secret,
                        const Hello& hello,
                        std::string_view server_nonce,
                        std::string_view client_nonce) {
  const std::vector<std::string> fields = {"client",
                                           std::string(server_nonce),
                                           std::string(client_nonce),
                                           std::string(name_of_kind(hello.kind)),
                                           hello.node,
                                           std::to_string(hello.rank),
                                           std::to_string(hello.size),
                                           std::to_string(hello.start)};
  return hmac_hex(secret, join(fields, "\n"));
}

std::string server_code(std::string_view secret,
                        std::string_view server_nonce,
                        std::string_view client_nonce) {
  const std::vector<std::string> fields = {
      "server", std::string(server_nonce), std::string(client_nonce)};
  return hmac_hex(secret, join(fields, "\n"));
}

bool same_code(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Json hello_message(const Hello& hello,
                   std::string_view secret,
                   std::string_view server_nonce,
                   std::string_view client_nonce) {
  return {{"v", kProtocolVersion},
          {"type", "hello"},
          {"kind", name_of_kind(hello.kind)},
          {"node", hello.node},
          {"rank", hello.rank},
          {"size", hello.size},
          {"start", hello.start},
          {"nonce", client_nonce},
          {"mac", client_code(secret, hello, server_nonce, client_nonce)}};
}

Result<Hello> check_hello(const Json& message,
                          std::string_view secret,
                          std::string_view server_nonce) {
  if (const int version = json_or<int>(message, "v", 0); version != kProtocolVersion) {
    return fail(ErrorCode::invalid,
                "report: protocol version " + std::to_string(version) + ": must be " +
                    std::to_string(kProtocolVersion));
  }
  const std::string kind = json_or<std::string>(message, "kind", "");
  if (json_or<std::string>(message, "type", "") != "hello" || (kind != "rank" && kind != "agent")) {
    return fail(ErrorCode::invalid, "report: no hello of a rank or an agent");
  }
  Hello hello;
  hello.kind = kind == "rank" ? ClientKind::rank : ClientKind::agent;
  hello.node = json_or<std::string>(message, "node", "");
  hello.rank = json_or<int>(message, "rank", -1);
  hello.size = json_or<int>(message, "size", 0);
  hello.start = json_or<int>(message, "start", 0);
  const std::string nonce = json_or<std::string>(message, "nonce", "");
  if (!same_code(client_code(secret, hello, server_nonce, nonce),
                 json_or<std::string>(message, "mac", ""))) {
    return fail(ErrorCode::denied, "report: the secrets differ");
  }
  const bool rank_fits =
      hello.kind == ClientKind::agent ||
      (hello.size > 0 && hello.size <= kMostRanks && hello.rank >= 0 && hello.rank < hello.size);
  if (!plain(hello.node) || !rank_fits) {
    return fail(ErrorCode::invalid,
                "report: rank " + std::to_string(hello.rank) + " of " + std::to_string(hello.size) +
                    " on '" + hello.node + "': impossible");
  }
  return hello;
}

Status LineBuffer::add(std::string_view bytes) {
  bytes_.append(bytes);
  const std::size_t last_end = bytes_.rfind('\n');
  const std::size_t open = last_end == std::string::npos ? bytes_.size() : bytes_.size() - last_end;
  if (open > kLineLimit) {
    return fail(ErrorCode::invalid,
                "report: a line longer than " + std::to_string(kLineLimit) + " bytes");
  }
  return {};
}

std::optional<std::string> LineBuffer::next() {
  const std::size_t end = bytes_.find('\n');
  if (end == std::string::npos) {
    return std::nullopt;
  }
  std::string line = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  return line;
}

}  // namespace acb::train

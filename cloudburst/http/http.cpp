// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/http/http.h"

#include <curl/curl.h>

#include <malloc.h>
#include <string.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>

namespace acb::cloud {

namespace {

// libcurl builds the request, key included, in memory of its own and does not clear it. With these
// every block that it gives back is zeroed first, so that the key's copies live as long as the
// call.
void wiping_free(void* block) {
  if (block != nullptr) {
    ::explicit_bzero(block, ::malloc_usable_size(block));
    std::free(block);
  }
}

void* wiping_realloc(void* block, std::size_t size) {
  if (block == nullptr) {
    return std::malloc(size);
  }
  void* moved = std::malloc(size);
  if (moved != nullptr) {
    std::copy_n(static_cast<const char*>(block),
                std::min(::malloc_usable_size(block), size),
                static_cast<char*>(moved));
    wiping_free(block);
  }
  return moved;
}

bool start_curl() {
  return curl_global_init_mem(CURL_GLOBAL_DEFAULT,
                              std::malloc,
                              wiping_free,
                              wiping_realloc,
                              ::strdup,
                              std::calloc) == CURLE_OK;
}

struct Cleanup {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, Cleanup>;

// The header lines of one request. The one with the key stands in memory that is wiped at the end,
// and curl is given a list node that points there: curl_slist_append would make one copy more.
class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() {
    key_line_.next = nullptr;
    curl_slist_free_all(rest_);
    ::explicit_bzero(authorization_.data(), authorization_.size());
  }

  void add(const std::string& line) { rest_ = curl_slist_append(rest_, line.c_str()); }
  void add_bearer(std::string_view key) {
    constexpr std::string_view kStart = "Authorization: Bearer ";
    authorization_.resize(kStart.size() + key.size() + 1);
    auto place = std::copy(kStart.begin(), kStart.end(), authorization_.begin());
    std::copy(key.begin(), key.end(), place);
    key_line_.data = authorization_.data();
  }
  [[nodiscard]] curl_slist* list() {
    if (key_line_.data == nullptr) {
      return rest_;
    }
    key_line_.next = rest_;
    return &key_line_;
  }

 private:
  curl_slist* rest_ = nullptr;
  std::vector<char> authorization_;
  curl_slist key_line_{nullptr, nullptr};
};

struct Answer {
  HttpResponse response;
  std::size_t limit = 0;
  bool too_large = false;
};

std::size_t take_body(char* bytes, std::size_t, std::size_t count, void* target) {
  auto& answer = *static_cast<Answer*>(target);
  if (answer.response.body.size() + count > answer.limit) {
    answer.too_large = true;
    return 0;
  }
  answer.response.body.append(bytes, count);
  return count;
}

std::string_view without_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::size_t take_header(char* bytes, std::size_t, std::size_t count, void* target) {
  constexpr std::size_t kMostHeaders = 200;
  auto& headers = static_cast<Answer*>(target)->response.headers;
  const std::string_view line(bytes, count);
  const std::size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) {
    headers.clear();  // a "100 Continue" came before
  } else if (colon != std::string_view::npos && headers.size() < kMostHeaders) {
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    headers[name] = without_space(line.substr(colon + 1));
  }
  return count;
}

ErrorCode code_for(CURLcode status) {
  switch (status) {
    case CURLE_OPERATION_TIMEDOUT:
      return ErrorCode::timeout;
    case CURLE_PEER_FAILED_VERIFICATION:
      return ErrorCode::denied;
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return ErrorCode::invalid;
    case CURLE_WRITE_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return ErrorCode::corrupt;
    default:
      return ErrorCode::unavailable;
  }
}

std::string seconds_of(std::chrono::milliseconds time) {
  return std::to_string((time.count() + 500) / 1000) + " s";
}

/// What went wrong in plain words first, then libcurl's.
std::string cause_of(CURL* curl, CURLcode status, const HttpRequest& request, const char* reason) {
  std::string detail = *reason != '\0' ? reason : curl_easy_strerror(status);
  switch (status) {
    case CURLE_OPERATION_TIMEDOUT: {
      curl_off_t sending_from = 0;  // 0 until name, connection and TLS are done
      curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &sending_from);
      return sending_from > 0
                 ? "no answer within " + seconds_of(request.limit) + ": " + detail
                 : "no connection within " + seconds_of(request.connect_limit) + ": " + detail;
    }
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
      return "connection dropped: " + detail;
    default:
      return detail;
  }
}

void set_common(CURL* curl, const HttpRequest& request) {
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
  // HTTP/2 would put the headers into memory that nghttp2 allocates, which nobody wipes.
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(
      curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_limit.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.limit.count()));
  if (!request.body.empty() || request.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(
        curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
}

void set_trust(CURL* curl, const HttpRequest& request) {
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, request.verify_name ? 2L : 0L);
  if (!request.ca_file.empty() || !request.ca_pem.empty()) {
    // Only the given authorities: the system's folder would be searched beside them.
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(
        curl, CURLOPT_CAINFO, request.ca_file.empty() ? nullptr : request.ca_file.c_str());
  }
  if (!request.ca_pem.empty()) {
    // curl only reads the blob, but its structure wants a pointer to what may change.
    std::string copy = request.ca_pem;
    curl_blob blob{copy.data(), copy.size(), CURL_BLOB_COPY};
    curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
  }
}

std::string where(const std::string& url) {
  return "http: " + url.substr(0, url.find('?'));
}

}  // namespace

std::string HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

Result<HttpResponse> http_call(const HttpRequest& request) {
  static const bool started = start_curl();
  const Handle curl(started ? curl_easy_init() : nullptr);
  if (!curl) {
    return fail(ErrorCode::internal, where(request.url) + ": libcurl does not start");
  }
  if (request.bearer != nullptr && !request.url.starts_with("https://")) {
    return fail(ErrorCode::invalid, where(request.url) + ": a key is sent over https only");
  }
  Answer answer{{}, request.body_limit, false};
  HeaderList headers;
  for (const auto& [name, value] : request.headers) {
    headers.add(std::string(name).append(": ").append(value));
  }
  headers.add("Expect:");  // no wait for "100 Continue"
  if (request.bearer != nullptr) {
    headers.add_bearer(request.bearer->reveal());
  }
  char reason[CURL_ERROR_SIZE] = "";
  set_common(curl.get(), request);
  set_trust(curl.get(), request);
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.list());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &answer);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, reason);
  const CURLcode status = curl_easy_perform(curl.get());
  if (status != CURLE_OK) {
    const std::string cause = answer.too_large ? "the answer is larger than " +
                                                     std::to_string(request.body_limit) + " bytes"
                                               : cause_of(curl.get(), status, request, reason);
    return fail(code_for(status), where(request.url) + ": " + cause);
  }
  long http_status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &http_status);
  answer.response.status = static_cast<int>(http_status);
  return std::move(answer.response);
}

std::string url_escape(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      escaped += c;
    } else {
      escaped += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return escaped;
}

}  // namespace acb::cloud

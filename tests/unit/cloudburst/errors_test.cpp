// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/provider/errors.h"

#include <gtest/gtest.h>

#include <string>

namespace acb::cloud {
namespace {

std::string body(const std::string& code, const std::string& message = "words") {
  return R"({"error":{"code":")" + code + R"(","message":")" + message +
         R"(","request_id":"req-1"}})";
}

TEST(Classify, TheBodysCodeDecidesThenItsWordsThenTheStatus) {
  struct Row {
    int status;
    std::string body;
    ErrorClass cls;
    const char* code;
  };
  for (const Row& row : {
           Row{429, body("rate_limited"), ErrorClass::throttled, "rate_limited"},
           Row{503, body("rate_limited"), ErrorClass::throttled, "rate_limited"},
           Row{409,
               body("insufficient_capacity"),
               ErrorClass::no_capacity,
               "insufficient_capacity"},
           Row{409, body("price_exceeded"), ErrorClass::no_capacity, "price_exceeded"},
           Row{403, body("quota_exceeded"), ErrorClass::quota, "quota_exceeded"},
           Row{429, body("quota_exceeded"), ErrorClass::quota, "quota_exceeded"},
           Row{401, body("unauthorized"), ErrorClass::auth, "unauthorized"},
           Row{403, body("forbidden"), ErrorClass::auth, "forbidden"},
           Row{400, body("invalid_argument"), ErrorClass::bad_request, "invalid_argument"},
           Row{404, body("not_found"), ErrorClass::gone, "not_found"},
           Row{409, body("idempotency_mismatch"), ErrorClass::conflict, "idempotency_mismatch"},
           Row{409, body("idempotency_expired"), ErrorClass::conflict, "idempotency_expired"},
           Row{500, body("internal"), ErrorClass::ambiguous, "internal"},
           Row{503, body("unavailable"), ErrorClass::ambiguous, "unavailable"},
           Row{500, body("internal", "Out of host capacity"), ErrorClass::no_capacity, "internal"},
           Row{500,
               body("InternalError", "out of CAPACITY"),
               ErrorClass::no_capacity,
               "InternalError"},
           Row{500, "Out of host capacity.", ErrorClass::no_capacity, "http_500"},
           Row{400,
               body("invalid_argument", "capacity must be > 0"),
               ErrorClass::bad_request,
               "invalid_argument"},
           Row{401, "", ErrorClass::auth, "http_401"},
           Row{404, "<html>", ErrorClass::gone, "http_404"},
           Row{409, "", ErrorClass::conflict, "http_409"},
           Row{422, "{}", ErrorClass::bad_request, "http_422"},
           Row{429, "", ErrorClass::throttled, "http_429"},
           Row{408, "", ErrorClass::ambiguous, "http_408"},
           Row{302, "", ErrorClass::ambiguous, "http_302"},
           Row{502, "<html>bad gateway", ErrorClass::ambiguous, "http_502"},
           Row{500, R"({"error":"text"})", ErrorClass::ambiguous, "http_500"},
           Row{500, R"({"error":{"code":7}})", ErrorClass::ambiguous, "http_500"},
           Row{418, body("teapot"), ErrorClass::ambiguous, "teapot"},
       }) {
    const CloudError error = classify(row.status, row.body, "", "");
    EXPECT_EQ(name_of(error.cls), name_of(row.cls)) << row.status << " " << row.body;
    EXPECT_EQ(error.code, row.code) << row.body;
  }
}

TEST(Classify, DoubtsAServerErrorThatSpeaksOfCapacity) {
  EXPECT_TRUE(classify(500, body("internal", "gateway at capacity"), "", "").unsure);
  EXPECT_TRUE(classify(503, body("insufficient_capacity"), "", "").unsure);
  EXPECT_FALSE(classify(409, body("insufficient_capacity"), "", "").unsure);
  EXPECT_FALSE(classify(502, "", "", "").unsure);  // ambiguous: doubted anyway
}

TEST(Classify, KeepsTheProvidersWordsAndNumbers) {
  const CloudError error = classify(
      409,
      R"({"error":{"code":"idempotency_mismatch","message":"other\nbody","request_id":"req-9","allocation_id":"a-1"},"new":1})",
      "17",
      "header-id");
  EXPECT_EQ(describe(error), "conflict: idempotency_mismatch: other body (request req-9)");
  EXPECT_EQ(error.allocation_id, "a-1");
  EXPECT_EQ(error.retry_after, std::chrono::seconds(17));
  EXPECT_EQ(classify(500, "", "", "header-id").request_id, "header-id");
  EXPECT_EQ(classify(429, "", "Wed, 21 Oct 2026 07:28:00 GMT", "").retry_after, std::nullopt);
  EXPECT_LE(classify(502, std::string(100'000, 'x'), "", "").message.size(), 500U);
}

}  // namespace
}  // namespace acb::cloud

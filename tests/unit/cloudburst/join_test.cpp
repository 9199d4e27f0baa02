// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/join/address_limit.h"
#include "cloudburst/join/digest.h"

#include <gtest/gtest.h>

namespace acb::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Digest, HashesAndCompares) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(same_text("abc", "abc"));
  EXPECT_FALSE(same_text("abc", "abd"));
  EXPECT_FALSE(same_text("abc", "ab"));
  EXPECT_EQ(new_join_secret().size(), 64U);
  EXPECT_NE(new_join_secret(), new_join_secret());
}

TEST(Base64, ReadsWhatItWrites) {
  struct Row {
    std::string bytes;
    const char* text;
  };
  for (const Row& row : {Row{"", ""},
                         Row{"f", "Zg=="},
                         Row{"fo", "Zm8="},
                         Row{"foo", "Zm9v"},
                         Row{std::string("\0\xff", 2), "AP8="}}) {
    EXPECT_EQ(to_base64(row.bytes), row.text);
    EXPECT_EQ(from_base64(row.text).value(), row.bytes);
  }
  for (const char* text : {"Zg", "Zg=", "Z!==", "Zm9v\n"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

TEST(AddressLimit, SlowsDownWhoIsRefusedOften) {
  AddressLimit limit(3, seconds(2), 100);
  const milliseconds start{1000};
  for (int time = 0; time < 3; ++time) {
    ASSERT_TRUE(limit.may_try("a", start)) << time;
    limit.refused("a", start);
  }
  EXPECT_FALSE(limit.may_try("a", start));
  EXPECT_TRUE(limit.may_try("b", start));
  EXPECT_FALSE(limit.may_try("a", start + milliseconds(1999)));
  EXPECT_TRUE(limit.may_try("a", start + seconds(2)));
  limit.refused("a", start + seconds(2));
  EXPECT_FALSE(limit.may_try("a", start + seconds(2)));
  EXPECT_TRUE(limit.may_try("a", start + seconds(60)));
}

TEST(AddressLimit, ForgetsTheLightestOffenderWhenFull) {
  AddressLimit limit(1, seconds(10), 2);
  limit.refused("light", milliseconds(0));
  limit.refused("heavy", milliseconds(0));
  limit.refused("heavy", milliseconds(0));
  limit.refused("new", milliseconds(0));
  EXPECT_FALSE(limit.may_try("heavy", milliseconds(0)));
  EXPECT_FALSE(limit.may_try("new", milliseconds(0)));
  EXPECT_TRUE(limit.may_try("light", milliseconds(0)));
}

}  // namespace
}  // namespace acb::cloud

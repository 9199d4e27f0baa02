// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/daemon/admission.h"

#include "cloudburst/join/digest.h"

#include <gtest/gtest.h>

namespace acb::cloud {
namespace {

using std::chrono::seconds;

const WallTime kNow{std::chrono::milliseconds(1'800'000'000'000)};
const std::string kSecret = sha256_hex("secret");
const JoinRequest kRequest{kSecret, "i-1", "10.2.1.1"};

Book book_with(LeaseState state, const std::string& instance, const std::string& secret) {
  Lease lease;
  lease.key = "demo/7/0/burst-0/1";
  lease.node = "burst-0";
  lease.state = state;
  lease.instance_id = instance;
  lease.secret_sha256 = secret;
  Book book;
  book.leases[lease.key] = lease;
  return book;
}

TEST(Admission, OpensToTheLeaseThatWaitsForTheSecret) {
  struct Case {
    const char* name;
    LeaseState state;
    const char* rented;
    const char* waits_for;
    std::optional<ErrorCode> refused;
  };
  const auto denied = ErrorCode::denied;
  for (const Case& c :
       {Case{"booting", LeaseState::booting, "i-1", "secret", std::nullopt},
        Case{
            "before the create call is answered", LeaseState::creating, "", "secret", std::nullopt},
        Case{"another secret", LeaseState::booting, "i-1", "other", ErrorCode::not_found},
        Case{"another instance", LeaseState::booting, "i-2", "secret", denied},
        Case{"registered", LeaseState::up, "i-1", "secret", denied},
        Case{"being given back", LeaseState::releasing, "i-1", "secret", denied},
        Case{"gone", LeaseState::gone, "i-1", "secret", denied}}) {
    const Book book = book_with(c.state, c.rented, sha256_hex(c.waits_for));
    const auto lease = Admission().lease_for(kRequest, book, kNow);
    ASSERT_EQ(lease.has_value(), !c.refused) << c.name;
    if (c.refused) {
      EXPECT_EQ(lease.error().code, *c.refused) << c.name;
    } else {
      EXPECT_EQ((*lease)->node, "burst-0") << c.name;
    }
  }
  const auto used =
      Admission().lease_for(kRequest, book_with(LeaseState::booting, "i-1", ""), kNow);
  EXPECT_EQ(used.error().code, ErrorCode::not_found);
}

TEST(Admission, OpensAgainToTheSameNodeAlone) {
  struct Case {
    const char* name;
    JoinRequest request;
    seconds later;
    LeaseState state;
    bool opens;
  };
  for (const Case& c : {
           Case{"its answer was lost", kRequest, seconds(59), LeaseState::booting, true},
           Case{"a minute later", kRequest, seconds(60), LeaseState::booting, false},
           Case{"registered meanwhile", kRequest, seconds(1), LeaseState::up, false},
           Case{"from another address",
                {kSecret, "i-1", "10.2.1.2"},
                seconds(1),
                LeaseState::booting,
                false},
           Case{"as another instance",
                {kSecret, "i-2", "10.2.1.1"},
                seconds(1),
                LeaseState::booting,
                false},
           Case{"with another secret",
                {sha256_hex("other"), "i-1", "10.2.1.1"},
                seconds(1),
                LeaseState::booting,
                false},
       }) {
    Admission admission;
    const Book first = book_with(LeaseState::booting, "", kSecret);
    admission.let_in(first.leases.begin()->second, kRequest, kNow);
    const Book book = book_with(c.state, "", "");
    EXPECT_EQ(admission.lease_for(c.request, book, kNow + c.later).has_value(), c.opens) << c.name;
  }
}

TEST(Admission, TheMinuteBeginsWithTheFirstAnswer) {
  Admission admission;
  const Book book = book_with(LeaseState::booting, "i-1", "");
  const Lease& lease = book.leases.begin()->second;
  admission.let_in(lease, kRequest, kNow);
  admission.let_in(lease, kRequest, kNow + seconds(50));
  EXPECT_TRUE(admission.lease_for(kRequest, book, kNow + seconds(55)));
  EXPECT_FALSE(admission.lease_for(kRequest, book, kNow + seconds(65)));
}

}  // namespace
}  // namespace acb::cloud

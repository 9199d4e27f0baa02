// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/report/message.h"

#include <gtest/gtest.h>

namespace acb::train {
namespace {

const Hello kRank{ClientKind::rank, "own-1", 3, 4, 2};

TEST(Hello, PassesWithTheSecretAndTheNonceItWasMadeFor) {
  const auto hello = check_hello(hello_message(kRank, "secret", "n1", "n2"), "secret", "n1");
  ASSERT_TRUE(hello) << hello.error().message;
  EXPECT_EQ(hello->kind, ClientKind::rank);
  EXPECT_EQ(hello->node, "own-1");
  EXPECT_EQ(hello->rank, 3);
  EXPECT_EQ(hello->size, 4);
  EXPECT_EQ(hello->start, 2);
}

TEST(Hello, IsDeniedWhenAnythingSignedDiffers) {
  const Json good = hello_message(kRank, "secret", "n1", "n2");
  struct Case {
    const char* key;
    Json value;
  };
  for (const Case& changed : {Case{"rank", 2},
                              Case{"size", 5},
                              Case{"node", "own-2"},
                              Case{"start", 1},
                              Case{"kind", "agent"},
                              Case{"nonce", "n3"},
                              Case{"mac", ""}}) {
    Json message = good;
    message[changed.key] = changed.value;
    const auto hello = check_hello(message, "secret", "n1");
    ASSERT_FALSE(hello) << changed.key;
    EXPECT_EQ(hello.error().code, ErrorCode::denied) << changed.key;
  }
  EXPECT_FALSE(check_hello(good, "another secret", "n1"));
  EXPECT_FALSE(check_hello(good, "secret", "another nonce")) << "a recorded hello must not pass";
}

TEST(Hello, IsInvalidForAnotherVersionOrImpossibleValues) {
  Json message = hello_message(kRank, "s", "n1", "n2");
  message["v"] = 2;
  EXPECT_EQ(check_hello(message, "s", "n1").error().code, ErrorCode::invalid);
  for (const Hello& impossible : {Hello{ClientKind::rank, "n", 4, 4, 1},
                                  Hello{ClientKind::rank, "n", -1, 4, 1},
                                  Hello{ClientKind::rank, "n", 0, 0, 1},
                                  Hello{ClientKind::rank, "", 0, 1, 1},
                                  Hello{ClientKind::agent, "a\nb", -1, 0, 0}}) {
    const auto hello = check_hello(hello_message(impossible, "s", "n1", "n2"), "s", "n1");
    ASSERT_FALSE(hello) << impossible.node << impossible.rank;
    EXPECT_EQ(hello.error().code, ErrorCode::invalid);
  }
}

TEST(Hello, SupervisorAndClientCodesDiffer) {
  EXPECT_NE(server_code("s", "a", "b"), client_code("s", kRank, "a", "b"));
}

TEST(LineBuffer, CutsLinesHoweverTheBytesArrive) {
  LineBuffer lines;
  ASSERT_TRUE(lines.add("{\"a\":"));
  EXPECT_FALSE(lines.next());
  ASSERT_TRUE(lines.add("1}\n{}\n{"));
  EXPECT_EQ(lines.next(), "{\"a\":1}");
  EXPECT_EQ(lines.next(), "{}");
  EXPECT_FALSE(lines.next());
}

TEST(LineBuffer, RefusesALineWithoutEnd) {
  LineBuffer lines;
  EXPECT_TRUE(lines.add(std::string(kLineLimit, 'x')));
  EXPECT_FALSE(lines.add("x"));
}

}  // namespace
}  // namespace acb::train

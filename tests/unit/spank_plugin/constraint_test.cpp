// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/constraint.h"

#include <gtest/gtest.h>

namespace acb::spank {
namespace {

const Halves kHalves{"onprem", "cloud", 2, 4};

TEST(Constraint, FoldsPlainNamesIntoBothHalves) {
  struct Row {
    const char* user;
    const char* folded;
  };
  for (const Row& row : {Row{"", "[onprem*2&cloud*4]"},
                         Row{"x", "[(onprem&x)*2&(cloud&x)*4]"},
                         Row{"x&y", "[(onprem&x&y)*2&(cloud&x&y)*4]"},
                         Row{"x,y", "[(onprem&x&y)*2&(cloud&x&y)*4]"},
                         Row{"cloudy", "[(onprem&cloudy)*2&(cloud&cloudy)*4]"}}) {
    const auto folded = fold_constraint(row.user, kHalves);
    ASSERT_TRUE(folded) << folded.error().message;
    EXPECT_EQ(*folded, row.folded);
  }
}

TEST(Constraint, RefusesWhatCannotBeFolded) {
  struct Row {
    const char* user;
    const char* why;
  };
  for (const Row& row : {Row{"x*2", "a burst cannot be combined with '*' in the constraint"},
                         Row{"[x|y]", "a burst cannot be combined with '[' in the constraint"},
                         Row{"x|y", "a burst cannot be combined with '|' in the constraint"},
                         Row{"(x&y)", "a burst cannot be combined with '(' in the constraint"},
                         Row{"x&&y", "'' is no feature name"},
                         Row{"x&", "'' is no feature name"},
                         Row{"x y", "'x y' is no feature name"},
                         Row{"x&cloud", "'cloud' is set by --autocloud-burst itself"},
                         Row{"onprem", "'onprem' is set by --autocloud-burst itself"}}) {
    const auto folded = fold_constraint(row.user, kHalves);
    ASSERT_FALSE(folded) << row.user;
    EXPECT_EQ(folded.error().message,
              "--constraint: '" + std::string(row.user) + "': " + row.why +
                  "; write feature names joined by &, which then hold for own and rented nodes");
  }
}

}  // namespace
}  // namespace acb::spank

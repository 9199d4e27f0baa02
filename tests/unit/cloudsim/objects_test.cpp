// SPDX-License-Identifier: Apache-2.0
#include "cloudsim/objects.h"

#include <gtest/gtest.h>

namespace acb::sim {
namespace {

TEST(ParseRange, OneRangeIsCutToTheObject) {
  struct Row {
    const char* header;
    const char* expected;  // offset+length, "whole" or "416"
  };
  for (const Row& row : {Row{"", "whole"},
                         Row{"bytes=0-0", "0+1"},
                         Row{"bytes=2-5", "2+4"},
                         Row{"bytes=8-99", "8+2"},
                         Row{"bytes=4-", "4+6"},
                         Row{"bytes=-3", "7+3"},
                         Row{"bytes=-99", "0+10"},
                         Row{"bytes=10-", "416"},
                         Row{"bytes=-0", "416"},
                         Row{"bytes=5-2", "whole"},
                         Row{"bytes=0-1,4-5", "whole"},
                         Row{"lines=1-2", "whole"},
                         Row{"bytes=-", "whole"}}) {
    const auto range = parse_range(row.header, 10);
    std::string got = "416";
    if (range) {
      got = *range ? std::to_string((*range)->offset) + "+" + std::to_string((*range)->length)
                   : "whole";
    }
    EXPECT_EQ(got, row.expected) << row.header;
  }
}

}  // namespace
}  // namespace acb::sim

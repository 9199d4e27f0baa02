// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/site_config.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <stdlib.h>

namespace acb::spank {
namespace {

TEST(SiteConfig, ReadsItsTablesAndPassesOverTheOthers) {
  const auto config = parse_site_config("a.toml", R"(
    cluster = "demo"
    [burst]
    max_nodes = 8
    default_partition = "gpu"
    own_feature = "mine"
    cloud_feature = "rented"
    gpu_types = ["a100-80gb"]
    market = "on-demand"
    later = true
    [twins]
    gpu = "gpu-burst"
    [provider]
    url = "https://x"
  )");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->limits.max_nodes, 8);
  EXPECT_EQ(config->limits.gpu_types, std::vector<std::string>{"a100-80gb"});
  EXPECT_EQ(config->default_partition, "gpu");
  EXPECT_EQ(config->own_feature, "mine");
  EXPECT_EQ(config->cloud_feature, "rented");
  EXPECT_EQ(config->market, Market::on_demand);
  EXPECT_TRUE(config->is_twin("gpu-burst"));
  EXPECT_FALSE(config->is_twin("gpu"));
}

TEST(SiteConfig, AnErrorNamesTheKeyAndWhatIsAllowed) {
  struct Row {
    const char* text;
    const char* message;
  };
  for (const Row& row :
       {Row{"[burst]\nmax_nodes = 0", "a.toml: burst.max_nodes: must be 1 to 65000"},
        Row{"[burst]\nmax_nodes = '8'", "a.toml: burst.max_nodes: must be 1 to 65000"},
        Row{"[burst]\nmarket = 'x'", "a.toml: burst.market: 'x': must be spot or on-demand"},
        Row{"[burst]\ngpu_types = []",
            "a.toml: burst.gpu_types: must be a list of at least one GPU type"},
        Row{"[burst]\nown_feature = 'a&b'",
            "a.toml: burst.own_feature: must be one plain name in quotes"},
        Row{"[burst]\nown_feature = 'cloud'",
            "a.toml: burst.cloud_feature: must differ from burst.own_feature"},
        Row{"twins = 1", "a.toml: twins: must be a table"},
        Row{"[twins]\na = 'b,c'", "a.toml: twins.a: must be the name of one partition"},
        Row{"[twins]\na = 'b'\nb = 'c'", "a.toml: twins.a: 'b' has a twin of its own"}}) {
    const auto config = parse_site_config("a.toml", row.text);
    ASSERT_FALSE(config) << row.text;
    EXPECT_EQ(config.error().message, row.message);
  }
  EXPECT_EQ(parse_site_config("a.toml", "\n[burst").error().message.substr(0, 15),
            "a.toml: line 2:");
}

class SiteFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "site-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "autocloud.toml";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& text) { ASSERT_TRUE(write_file(path_, text)); }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

TEST_F(SiteFileTest, IsReadAgainOnlyWhenItChanged) {
  write("[burst]\nmax_nodes = 8");
  SiteFile file(path_);
  bool changed = false;
  EXPECT_EQ(file.current(&changed).config->limits.max_nodes, 8);
  EXPECT_TRUE(changed);
  EXPECT_EQ(file.current(&changed).config->limits.max_nodes, 8);
  EXPECT_FALSE(changed);
  write("[burst]\nmax_nodes = 9");  // the same size: another inode and time
  EXPECT_EQ(file.current(&changed).config->limits.max_nodes, 9);
  EXPECT_TRUE(changed);
}

TEST_F(SiteFileTest, KeepsTheLastGoodSettingsBesideTheError) {
  SiteFile file(path_);
  const Site missing = file.current();
  EXPECT_FALSE(missing.config);
  EXPECT_NE(missing.error.find(path_.string()), std::string::npos);
  write("[twins]\nbatch = 'batch-burst'");
  EXPECT_TRUE(file.current().error.empty());
  write("[twins");
  const Site broken = file.current();
  EXPECT_NE(broken.error.find("line 1"), std::string::npos);
  ASSERT_TRUE(broken.config);
  EXPECT_TRUE(broken.config->is_twin("batch-burst"));
}

}  // namespace
}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
#include "cloudburst/config/config.h"

#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace acb::cloud {
namespace {

class ConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            ("acb-config-" + std::to_string(getpid()) + "-" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  Result<Config> load(const std::string& text) {
    EXPECT_TRUE(write_file(path_, text));
    return load_config(path_);
  }
  std::filesystem::path path_;
};

constexpr const char* kLeast =
    "cluster = 'demo'\n[twins]\nbatch = 'batch-burst'\n[nodes]\ncloud = 'burst-[0-3]'\n";

TEST_F(ConfigFile, ThreeKeysAreEnough) {
  const auto config = load(kLeast);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->cluster, "demo");
  EXPECT_EQ(config->twins.at("batch"), "batch-burst");
  EXPECT_EQ(config->ledger(), "/var/lib/autocloud-burst/ledger.db");
  EXPECT_EQ(config->inbox(), "/var/spool/autocloud-burst/inbox");
  EXPECT_EQ(config->socket(), "/run/autocloud-burst/autocloudd.sock");
}

TEST_F(ConfigFile, AnErrorNamesTheKeyAndWhatIsAllowed) {
  struct Row {
    const char* text;
    const char* message;
  };
  const std::string least = kLeast;
  for (const Row& row : {
           Row{"[burst]\nmax_nodes = 0", "burst.max_nodes: '0': must be 1 to 1024"},
           Row{"[burst]\nmarket = 'cheap'",
               "burst.market: 'cheap': must be one of spot, on-demand"},
           Row{"[burst]\ngpu_types = []", "burst.gpu_types: '': must be one or more names"},
           Row{"[provider]\nurl = 'http://x'", "provider.url: 'http://x': must start with https"},
           Row{"[provider]\nmax_price_per_hour = 'x'", "provider.max_price_per_hour: 'x'"},
           Row{"[provider]\nkey = 'x'", "unknown key provider.key"},
       }) {
    const auto config = load(least + row.text);
    ASSERT_FALSE(config) << row.text;
    EXPECT_EQ(config.error().code, ErrorCode::invalid);
    EXPECT_THAT(config.error().message, ::testing::HasSubstr(row.message));
    EXPECT_THAT(config.error().message, ::testing::HasSubstr(path_.string()));
  }
}

TEST_F(ConfigFile, WhatHasNoDefaultMustBeGiven) {
  const auto config = load("cluster = 'demo'\n[twins]\nbatch = 'batch-burst'\n");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, ::testing::HasSubstr("nodes.cloud: has no default"));
}

TEST_F(ConfigFile, ATwinIsNobodysPartition) {
  const auto config =
      load("cluster = 'demo'\n[twins]\nbatch = 'x'\nx = 'y'\n[nodes]\ncloud = 'burst-[0-3]'\n");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, ::testing::HasSubstr("twins.batch: 'x'"));
}

TEST_F(ConfigFile, TheHooksReadTheirPartWhateverIsWrongElsewhere) {
  ASSERT_TRUE(write_file(path_,
                         "clustr = 'x'\n[burst]\nmax_nodes = 0\n[nodes]\ncloud = 'b-[0-3]'\n"
                         "idle_relese_s = 7\n[hooks]\nprolog = '/site/prolog'\nresme = '/x'\n"));
  const HookConfig hooks = load_hook_config(path_, "/nonexistent");
  EXPECT_EQ(hooks.config.cloud_nodes, "b-[0-3]");
  EXPECT_EQ(hooks.config.prolog_hook, "/site/prolog");
  ASSERT_EQ(hooks.wrong.size(), 1U);
  EXPECT_THAT(hooks.wrong.front(), ::testing::HasSubstr("did you mean hooks.resume?"));
}

TEST_F(ConfigFile, WithoutTomlTheHooksReadTheLastGoodCopy) {
  const std::filesystem::path copy = path_.string() + ".copy";
  ASSERT_TRUE(write_file(copy, "[nodes]\ncloud = 'b-[0-3]'\n[hooks]\nresume = '/site/resume'\n"));
  ASSERT_TRUE(write_file(path_, "nonsense"));
  const HookConfig hooks = load_hook_config(path_, copy);
  EXPECT_EQ(hooks.config.resume_hook, "/site/resume");
  EXPECT_EQ(hooks.wrong.size(), 1U);
  std::filesystem::remove(copy);
  EXPECT_EQ(load_hook_config(path_, copy).wrong.size(), 2U);
}

}  // namespace
}  // namespace acb::cloud

// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace acb::spank {
namespace {

Site site() {
  SiteConfig config;
  config.twins = {{"batch", "batch-burst"}, {"gpu", "gpu-burst"}};
  return {config, ""};
}

/// sbatch -N2 --autocloud-burst=4
JobRequest burst() {
  JobRequest job;
  job.label = {"AUTOCLOUD_BURST=4"};
  job.min_nodes = 2;
  job.max_nodes = 2;
  job.min_cpus = 2;
  return job;
}

using Change = std::function<void(JobRequest&)>;

std::string refusal(const Change& change) {
  JobRequest job = burst();
  change(job);
  const Decision decision = decide_submit(job, site());
  const auto* refused = std::get_if<Refusal>(&decision);
  return refused == nullptr ? "" : refused->message;
}

Rewrite rewrite(const Change& change) {
  JobRequest job = burst();
  change(job);
  const Decision decision = decide_submit(job, site());
  if (const auto* refused = std::get_if<Refusal>(&decision)) {
    ADD_FAILURE() << refused->message;
    return {};
  }
  return std::get<Rewrite>(decision);
}

TEST(DecideSubmit, MakesOneAllocationOfBothHalves) {
  const Rewrite made = rewrite([](JobRequest&) {});
  EXPECT_EQ(made.partition, "batch-burst");
  EXPECT_EQ(made.features, "[onprem*2&cloud*4]");
  EXPECT_EQ(made.batch_features, "onprem");
  EXPECT_EQ(made.nodes, 6U);
  EXPECT_EQ(made.tasks, std::nullopt);
  EXPECT_EQ(made.min_cpus, 6U);
  EXPECT_EQ(made.requeue, true);
  EXPECT_TRUE(made.append_output);
  EXPECT_EQ(made.admin_comment, "autocloud:v1 burst=4 own=2 gpu=v100-32gb market=spot");
  EXPECT_THAT(made.drop, ::testing::IsEmpty());
  EXPECT_THAT(made.set,
              ::testing::ElementsAre(::testing::Pair("SLURM_SPANK_AUTOCLOUD_BURST", "4"),
                                     ::testing::Pair("SLURM_SPANK_AUTOCLOUD_GPU", "v100-32gb"),
                                     ::testing::Pair("SLURM_SPANK_AUTOCLOUD_MARKET", "spot")));
}

TEST(DecideSubmit, ScalesTasksAndCpusWithTheNodes) {
  struct Row {
    std::optional<std::uint32_t> nodes;
    std::optional<std::uint32_t> tasks;
    std::optional<std::uint16_t> per_node;
    std::uint32_t min_cpus;
    std::uint32_t scaled_nodes;
    std::optional<std::uint32_t> scaled_tasks;
    std::uint32_t scaled_cpus;
    std::optional<std::uint16_t> each;  ///< set where the user gave a count in all
  };
  for (const Row& row : {Row{2, 8, {}, 16, 6, 24, 48, 4},
                         Row{2, 4, 2, 4, 6, 12, 12, {}},
                         Row{1, {}, {}, 1, 5, {}, 5, {}},
                         Row{{}, {}, {}, 1, 5, {}, 5, {}},
                         Row{{}, 3, 3, 3, 5, 15, 15, {}}}) {
    const Rewrite made = rewrite([&](JobRequest& job) {
      job.min_nodes = row.nodes;
      job.max_nodes = row.nodes;
      job.tasks = row.tasks;
      job.tasks_per_node = row.per_node;
      job.min_cpus = row.min_cpus;
    });
    EXPECT_EQ(made.nodes, row.scaled_nodes);
    EXPECT_EQ(made.tasks, row.scaled_tasks);
    EXPECT_EQ(made.min_cpus, row.scaled_cpus);
    EXPECT_EQ(made.tasks_per_node, row.each);
    EXPECT_EQ(made.drop.size(), row.tasks ? 2U : 0U) << "SLURM_NTASKS and SLURM_NPROCS";
  }
}

TEST(DecideSubmit, KeepsWhatTheUserChose) {
  const Rewrite made = rewrite([](JobRequest& job) {
    job.label = {"AUTOCLOUD_BURST=1", "AUTOCLOUD_GPU=h100-80gb", "AUTOCLOUD_MARKET=on-demand"};
    job.partition = "gpu";
    job.features = "x&y";
    job.requeue = false;
    job.open_mode_given = true;
    job.batch_features = "onprem";
  });
  EXPECT_EQ(made.partition, "gpu-burst");
  EXPECT_EQ(made.features, "[(onprem&x&y)*2&(cloud&x&y)*1]");
  EXPECT_EQ(made.requeue, false);
  EXPECT_FALSE(made.append_output);
  EXPECT_EQ(made.admin_comment, "autocloud:v1 burst=1 own=2 gpu=h100-80gb market=on-demand");
}

TEST(DecideSubmit, LeavesBatchMattersOutForSalloc) {
  const Rewrite made = rewrite([](JobRequest& job) { job.batch = false; });
  EXPECT_EQ(made.features, "[onprem*2&cloud*4]");
  EXPECT_EQ(made.batch_features, std::nullopt);
  EXPECT_EQ(made.requeue, std::nullopt);
  EXPECT_FALSE(made.append_output);
  EXPECT_TRUE(made.set.empty());
}

TEST(DecideSubmit, RefusesWhatCannotBeABurstWithReasonAndWayOut) {
  const std::string per_node =
      "would have to be met by the own and by the rented nodes alone; write --gpus-per-node=K";
  const std::string pick = "Slurm picks both halves of a burst; use --constraint=FEATURE";
  const std::string salloc =
      ": not in salloc --autocloud-burst: its shell would keep the count of the own nodes alone; "
      "give it to srun or mpirun in the allocation, or use sbatch";
  struct Row {
    std::string message;
    Change change;
  };
  const std::vector<Row> rows = {
      {"--autocloud-burst: '65': must be 1 to 64",
       [](auto& j) { j.label = {"AUTOCLOUD_BURST=65"}; }},
      {"--autocloud-burst: '': must be 1 to 64", [](auto& j) { j.label = {"AUTOCLOUD_BURST="}; }},
      {"--autocloud-gpu: 'rtx': must be one of v100-32gb, a100-80gb, h100-80gb",
       [](auto& j) { j.label.push_back("AUTOCLOUD_GPU=rtx"); }},
      {"AUTOCLOUD_BURST: set twice in the job's control environment",
       [](auto& j) { j.label.push_back("AUTOCLOUD_BURST=4"); }},
      {"--ntasks: '4': with --autocloud-burst it needs --nodes=M, the own nodes that it is for",
       [](auto& j) {
         j.min_nodes = j.max_nodes = std::nullopt;
         j.tasks = 4;
       }},
      {"--ntasks: '3': must be a multiple of --nodes=2, so that every node gets the same; or write "
       "--ntasks-per-node=T",
       [](auto& j) { j.tasks = 3; }},
      {"--ntasks: '4000000000': too many for 6 nodes", [](auto& j) { j.tasks = 4000000000U; }},
      {"--nodes: '2-4': a burst has a fixed number of own nodes; write --nodes=M",
       [](auto& j) { j.max_nodes = 4; }},
      {"--nodes: '0': a burst needs an own node for its script; write --nodes=1",
       [](auto& j) { j.min_nodes = j.max_nodes = 0; }},
      {"--gpus: 'gres:gpu:4': not with --autocloud-burst: " + per_node,
       [](auto& j) { j.per_job = "gres:gpu:4"; }},
      {"--gpus-per-socket: 'gres:gpu:1': not with --autocloud-burst: " + per_node,
       [](auto& j) { j.per_socket = "gres:gpu:1"; }},
      {"--gpus-per-task: 'gres:gpu:1': not with --autocloud-burst: " + per_node,
       [](auto& j) { j.per_task = "gres:gpu:1"; }},
      {"--ntasks-per-gpu: not with --autocloud-burst: write --gpus-per-node=K --ntasks-per-node=T",
       [](auto& j) { j.tasks_per_gpu = 1; }},
      {"--array: '0-3': not with --autocloud-burst: each task would rent its own nodes; submit one "
       "job per burst",
       [](auto& j) { j.array = "0-3"; }},
      {"heterogeneous job: not with --autocloud-burst: a burst is one job; submit it without ':'",
       [](auto& j) { j.heterogeneous = true; }},
      {"scrontab: not with --autocloud-burst: let the entry call sbatch --autocloud-burst=N",
       [](auto& j) { j.scrontab = true; }},
      {"--nodelist: 'n1': not with --autocloud-burst: " + pick,
       [](auto& j) { j.required_nodes = "n1"; }},
      {"--exclude: 'n1': not with --autocloud-burst: " + pick,
       [](auto& j) { j.excluded_nodes = "n1"; }},
      {"--reservation: 'r': not with --autocloud-burst: rented nodes are in no reservation; submit "
       "without it",
       [](auto& j) { j.reservation = "r"; }},
      {"--prefer: 'x': not with --autocloud-burst: it would replace the burst's constraint; use "
       "--constraint=FEATURE",
       [](auto& j) { j.prefer = "x"; }},
      {"--contiguous: not with --autocloud-burst: own and rented nodes are not; submit without it",
       [](auto& j) { j.contiguous = true; }},
      {"--switches: not with --autocloud-burst: own and rented nodes share none; submit without it",
       [](auto& j) { j.switches = true; }},
      {"--time: 'infinite': not with --autocloud-burst: what is rented would be billed without "
       "an end; write --time=HH:MM:SS",
       [](auto& j) { j.infinite_time = true; }},
      {"--partition: 'batch,gpu': a burst runs in the twin of one partition; name one",
       [](auto& j) { j.partition = "batch,gpu"; }},
      {"--partition: 'cpu': has no burst twin; these have: batch, gpu",
       [](auto& j) { j.partition = "cpu"; }},
      {"--batch: 'cloud': a burst's script runs on an own node (onprem); submit without it",
       [](auto& j) { j.batch_features = "cloud"; }},
      {"--constraint: 'x|y': a burst cannot be combined with '|' in the constraint; write feature "
       "names joined by &, which then hold for own and rented nodes",
       [](auto& j) { j.features = "x|y"; }},
      {"--ntasks" + salloc,
       [](auto& j) {
         j.batch = false;
         j.tasks = 4;
       }},
      // salloc sends no count of its own: one task is what its user wrote.
      {"--ntasks" + salloc,
       [](auto& j) {
         j.batch = false;
         j.tasks = 1;
       }},
      {"--ntasks-per-node" + salloc,
       [](auto& j) {
         j.batch = false;
         j.tasks_per_node = 2;
       }},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(refusal(row.change), "autocloud: " + row.message);
  }
}

TEST(DecideSubmit, LeavesOtherJobsAlone) {
  JobRequest plain;
  plain.partition = "batch,cpu";
  plain.array = "0-9";
  plain.label = {"SOMETHING=1", "AUTOCLOUD_GPU=junk"};
  EXPECT_TRUE(std::holds_alternative<Untouched>(decide_submit(plain, site())));
  const Site unreadable{std::nullopt, "no such file"};
  EXPECT_TRUE(std::holds_alternative<Untouched>(decide_submit(plain, unreadable)));
}

TEST(DecideSubmit, ClosesTheTwinToWhatIsNotABurst) {
  for (const char* partition : {"batch-burst", "batch,batch-burst", ",gpu-burst"}) {
    for (const bool labelled : {false, true}) {
      JobRequest job = labelled ? burst() : JobRequest{};
      job.partition = partition;
      const Decision decision = decide_submit(job, site());
      const auto* refused = std::get_if<Refusal>(&decision);
      ASSERT_NE(refused, nullptr) << partition;
      EXPECT_EQ(refused->kind, RefusalKind::forbidden);
    }
  }
}

TEST(DecideSubmit, RefusesBurstsWhileTheSettingsCannotBeRead) {
  Site broken = site();
  broken.error = "autocloud.toml: line 3: bad";
  const Decision decision = decide_submit(burst(), broken);
  const auto* refused = std::get_if<Refusal>(&decision);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->kind, RefusalKind::no_config);
  EXPECT_EQ(refused->message,
            "autocloud: no burst can start now: the site's settings cannot be read: "
            "autocloud.toml: line 3: bad; tell your administrator");
  JobRequest intruder;
  intruder.partition = "batch-burst";
  EXPECT_TRUE(std::holds_alternative<Refusal>(decide_submit(intruder, broken)))
      << "the last good settings still close the twin";
}

TEST(DecideMove, KeepsUsersOutOfTheTwin) {
  EXPECT_TRUE(decide_move({.privileged = false, .partition = "batch-burst"}, site()));
  EXPECT_TRUE(decide_move({.privileged = false, .partition = "cpu,batch-burst"}, site()));
  EXPECT_FALSE(decide_move({.privileged = true, .partition = "batch-burst"}, site()));
  EXPECT_FALSE(decide_move({.privileged = false, .partition = "cpu"}, site()));
  EXPECT_FALSE(decide_move({.privileged = false, .partition = ""}, site()));
}

TEST(DecideMove, AsksForTheOwnerOnlyWhereItMatters) {
  EXPECT_TRUE(needs_ownership({.privileged = false, .partition = "", .fixed = "nodes"}));
  EXPECT_FALSE(needs_ownership({.privileged = true, .partition = "", .fixed = "nodes"}));
  EXPECT_FALSE(needs_ownership({.privileged = false, .partition = "", .fixed = ""}));
  EXPECT_EQ(
      refuse_change_of_burst({.privileged = false, .partition = "", .fixed = "nodes"}).message,
      "autocloud: nodes: cannot be changed in a burst; cancel it and submit it again");
}

}  // namespace
}  // namespace acb::spank

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/supervise/nodes.h"

#include "mpi_runtime/supervise/slurm_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace acb::train {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::string>;

TEST(ExpandHostlist, KnowsSlurmsForms) {
  const std::vector<std::pair<std::string, Words>> cases = {
      {"own-0", {"own-0"}},
      {"own-0,burst-3", {"own-0", "burst-3"}},
      {"own-[0-2]", {"own-0", "own-1", "own-2"}},
      {"own-[0,2-3],b", {"own-0", "own-2", "own-3", "b"}},
      {"n[08-11]", {"n08", "n09", "n10", "n11"}},
      {"n[099-101]", {"n099", "n100", "n101"}},
      {"r[0-1]n[5-6]x", {"r0n5x", "r0n6x", "r1n5x", "r1n6x"}},
  };
  for (const auto& [text, names] : cases) {
    const auto expanded = expand_hostlist(text);
    ASSERT_TRUE(expanded) << text << ": " << expanded.error().message;
    EXPECT_EQ(*expanded, names) << text;
  }
}

TEST(ExpandHostlist, RefusesWhatIsNone) {
  for (const char* text :
       {"", "a,", "n[1-2", "n1-2]x[", "n[2-1]", "n[a-b]", "n[0-999999999]", "n[]"}) {
    EXPECT_FALSE(expand_hostlist(text)) << text;
  }
}

TEST(Counts, ReadAndWriteSlurmsShortForm) {
  const std::vector<std::pair<std::string, std::vector<int>>> cases = {
      {"1", {1}},
      {"1(x4)", {1, 1, 1, 1}},
      {"2(x3),1", {2, 2, 2, 1}},
      {"1,2,1", {1, 2, 1}},
      {"16(x2),8(x2)", {16, 16, 8, 8}}};
  for (const auto& [text, counts] : cases) {
    const auto parsed = parse_counts("SLURM_TASKS_PER_NODE", text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, counts) << text;
    EXPECT_EQ(format_counts(counts), text);
  }
  for (const char* text : {"", "x", "1(x", "1(x0)", "1(x2)3", "-1"}) {
    EXPECT_FALSE(parse_counts("SLURM_TASKS_PER_NODE", text)) << text;
  }
}

TEST(ParseAllocation, PairsNodesWithTheirCounts) {
  const auto nodes = parse_allocation({{"SLURM_JOB_NODELIST", "burst-[0-1],own-0"},
                                       {"SLURM_TASKS_PER_NODE", "2(x2),1"},
                                       {"SLURM_JOB_CPUS_PER_NODE", "8(x2),4"}});
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 3U);
  EXPECT_EQ((*nodes)[1].name, "burst-1");
  EXPECT_EQ((*nodes)[1].tasks, 2);
  EXPECT_EQ((*nodes)[2].cpus, 4);
}

TEST(ParseAllocation, RefusesCountsForOtherNodes) {
  const auto nodes =
      parse_allocation({{"SLURM_JOB_NODELIST", "own-[0-3]"}, {"SLURM_TASKS_PER_NODE", "1(x3)"}});
  ASSERT_FALSE(nodes);
  EXPECT_NE(nodes.error().message.find("3 counts for 4 nodes"), std::string::npos);
  EXPECT_EQ(parse_allocation({}).error().code, ErrorCode::not_found);
}

TEST(EnvironmentFor, IsTheSurvivorsAndNothingElse) {
  const EnvironmentChange change =
      environment_for({{"own-0", 2, 8}, {"own-1", 2, 8}, {"b-1", 1, 4}});
  const EnvironmentChange wanted = {{"SLURM_JOB_NODELIST", "own-0,own-1,b-1"},
                                    {"SLURM_NODELIST", "own-0,own-1,b-1"},
                                    {"SLURM_JOB_NUM_NODES", "3"},
                                    {"SLURM_NNODES", "3"},
                                    {"SLURM_TASKS_PER_NODE", "2(x2),1"},
                                    {"SLURM_JOB_CPUS_PER_NODE", "8(x2),4"},
                                    {"SLURM_NTASKS", "5"},
                                    {"SLURM_NPROCS", "5"},
                                    {"SLURM_OVERLAP", "1"}};
  EXPECT_EQ(change, wanted);
}

TEST(FitRanks, LowersMpirunsOwnCountOnly) {
  const std::vector<std::pair<Words, Words>> cases = {
      {{"mpirun", "-np", "4", "prog"}, {"mpirun", "-np", "3", "prog"}},
      {{"mpirun", "--np", "2", "prog"}, {"mpirun", "--np", "2", "prog"}},
      {{"mpirun", "prog", "-n", "9"}, {"mpirun", "prog", "-n", "9"}},
      {{"mpirun", "--mca", "btl", "tcp,self", "-x", "A", "-n", "8", "prog", "-n", "9"},
       {"mpirun", "--mca", "btl", "tcp,self", "-x", "A", "-n", "3", "prog", "-n", "9"}},
      {{"mpirun", "--bind-to", "none", "--oversubscribe", "-c", "5", "prog"},
       {"mpirun", "--bind-to", "none", "--oversubscribe", "-c", "3", "prog"}},
      {{"mpirun", "-np"}, {"mpirun", "-np"}},
  };
  for (const auto& [given, fitted] : cases) {
    EXPECT_EQ(fit_ranks(given, 3), fitted) << testing::PrintToString(given);
  }
}

TEST(ExportsVariables, LooksAtMpirunsOptionsOnly) {
  EXPECT_TRUE(exports_variables({"mpirun", "--bind-to", "none", "-x", "PATH", "prog"}));
  EXPECT_FALSE(exports_variables({"mpirun", "-np", "2", "prog", "-x", "y"}));
}

TEST(ParseTimeLeft, KnowsSqueuesForms) {
  const std::vector<std::pair<std::string, std::int64_t>> cases = {{"42", 42},
                                                                   {"0:42", 42},
                                                                   {"2:03", 123},
                                                                   {"1:00:01", 3601},
                                                                   {"1-00:00:00", 86400},
                                                                   {"2-03:04:05", 183845}};
  for (const auto& [text, seconds] : cases) {
    const auto left = parse_time_left(text);
    ASSERT_TRUE(left) << text << ": " << left.error().message;
    EXPECT_EQ((*left)->count(), seconds) << text;
  }
  EXPECT_EQ(parse_time_left("UNLIMITED").value(), std::nullopt);
  for (const char* text : {"", "INVALID", "NOT_SET", "1-2", "1:2:3:4", "-5"}) {
    EXPECT_FALSE(parse_time_left(text)) << text;
  }
}

TEST(SrunOnNode, NamesTheNodeAndTakesNoGpus) {
  const Words line = srun_on_node("own-1", {"/opt/autocloud-agent"});
  EXPECT_THAT(line, testing::Contains("--nodelist=own-1"));
  EXPECT_THAT(line, testing::Contains("--overlap"));
  EXPECT_THAT(line, testing::Contains("--gres=none"));
  EXPECT_EQ(line.back(), "/opt/autocloud-agent");
}

TEST(WasCancelled, TellsTheUsersEndFromSlurmsOwn) {
  struct Case {
    const char* line;
    bool cancelled;
  };
  for (const Case& tried :
       {Case{"JobId=1 JobState=RUNNING Restarts=0 RunTime=00:00:09 TimeLimit=01:00:00", false},
        Case{"JobState=COMPLETING Restarts=0 RunTime=00:00:09 TimeLimit=01:00:00", true},
        Case{"JobState=COMPLETING Restarts=0 RunTime=00:00:09 TimeLimit=UNLIMITED", true},
        Case{"JobState=COMPLETING Restarts=1 RunTime=00:00:09 TimeLimit=01:00:00", false},
        Case{"JobState=COMPLETING Restarts=0 RunTime=01:00:12 TimeLimit=01:00:00", false},
        Case{"JobState=COMPLETING Restarts=0 RunTime=00:00:09 TimeLimit=01:00:00 "
             "PreemptTime=2026-01-31T23:59:59",
             false},
        Case{"JobState=COMPLETING Restarts=0 RunTime=00:00:09 TimeLimit=01:00:00 "
             "PreemptTime=None\n",
             true},
        Case{"JobState=CANCELLED Restarts=0", true},
        Case{"", false}}) {
    EXPECT_EQ(was_cancelled(tried.line, 0), tried.cancelled) << tried.line;
  }
}

TEST(WasRequeued, ByARestartThatThisStartIsNot) {
  EXPECT_TRUE(was_requeued("JobState=COMPLETING Restarts=1", 0));
  EXPECT_TRUE(was_requeued("JobState=PENDING Restarts=0", 0));
  EXPECT_FALSE(was_requeued("JobState=COMPLETING Restarts=1", 1));
  EXPECT_FALSE(was_requeued("JobState=RUNNING Restarts=0", 0));
  EXPECT_FALSE(was_requeued("", 0));
}

TEST(IsRefusal, OnlyWhereAskingAgainWouldNotHelp) {
  EXPECT_TRUE(is_refusal("Requested operation is presently disabled for job 7"));
  EXPECT_TRUE(is_refusal("Invalid job id specified for job 7"));
  for (const char* words : {"",
                            "Unable to contact slurm controller (connect failure)",
                            "Socket timed out on send/recv operation for job 7"}) {
    EXPECT_FALSE(is_refusal(words)) << words;
  }
}

TEST(LostHostComment, IsSaidOncePerStartOfARunningJob) {
  const WallTime now = *parse_time("time", "2026-01-31T12:00:00Z");
  const std::string mark = "autocloud: start 1 lost own-0 2026-01-31T12:00:00Z";
  const auto shown = [](const std::string& state, int restarts, const std::string& comment) {
    return "JobId=7 JobName=a b\n   JobState=" + state +
           " Reason=None\n   Requeue=1 Restarts=" + std::to_string(restarts) +
           " BatchFlag=1\n   BatchHost=own-0\n" +
           (comment.empty() ? "" : "   Comment=" + comment + "\n") +
           "   AdminComment=autocloud:v1 burst=2 own=1\n";
  };
  const std::string said = "autocloud: start 1 lost own-0 2026-01-31T11:59:";
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"no comment", shown("RUNNING", 1, ""), mark},
      {"a comment", shown("RUNNING", 1, "my words"), "my words; " + mark},
      {"said just now", shown("RUNNING", 1, "x; " + said + "31Z"), ""},
      {"said before", shown("RUNNING", 1, "x; " + said + "29Z"), "x; " + mark},
      {"an earlier start",
       shown("RUNNING", 1, "autocloud: start 0 lost own-0 2026-01-31T11:59:59Z"),
       mark},
      {"another start since", shown("RUNNING", 2, ""), ""},
      {"it ends", shown("COMPLETING", 1, ""), ""},
      {"it waits", shown("PENDING", 1, ""), ""},
      {"no answer", "", ""},
  };
  for (const auto& [name, job, comment] : cases) {
    EXPECT_EQ(lost_host_comment(job, 1, now).value_or(""), comment) << name;
  }
}

}  // namespace
}  // namespace acb::train

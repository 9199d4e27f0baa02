// SPDX-License-Identifier: Apache-2.0
// Loads job_submit_autocloud.so as slurmctld does, calls it with job descriptions as clients send
// them, and looks at what became of them.
//
//   job_submit_driver PLUGIN CONFIG STATE   (CONFIG is the file that the plugin reads; it is
//   rewritten)
#include "spank_plugin/slurm_compat.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

int failures = 0;

void expect(bool truth, const std::string& what) {
  if (!truth) {
    std::fprintf(stderr, "job_submit_driver: %s\n", what.c_str());
    ++failures;
  }
}

void free_item(void* item) {
  slurm_xfree(&item);
}

/// A description whose memory is Slurm's, freed as slurmctld frees it.
class Job {
 public:
  Job() {
    slurm_init_job_desc_msg(&job);
    job.het_job_offset = NO_VAL;  // as slurmctld sets it for jobs of one component
    job.min_nodes = job.max_nodes = 2;
    job.min_cpus = 2;
    job.script = slurm_xstrdup("#!/bin/sh\n");
    environment({"HOME=/root", "SLURM_NTASKS=4", "SLURM_NTASKS_PER_NODE=2", "SLURM_NPROCS=4"});
  }
  ~Job() {
    for (char* text : {job.script,
                       job.partition,
                       job.features,
                       job.batch_features,
                       job.admin_comment,
                       job.array_inx,
                       job.job_id_str}) {
      free_item(text);
    }
    free_array(job.environment, job.env_size);
    free_array(job.spank_job_env, job.spank_job_env_size);
    free_item(message);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void label(const std::vector<const char*>& entries) {
    set_array(job.spank_job_env, job.spank_job_env_size, entries);
  }
  void environment(const std::vector<const char*>& entries) {
    set_array(job.environment, job.env_size, entries);
  }
  [[nodiscard]] std::string variable(std::string_view name) const {
    for (std::uint32_t i = 0; i < job.env_size; ++i) {
      const std::string_view entry(job.environment[i]);
      if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
        return std::string(entry.substr(name.size() + 1));
      }
    }
    return "(none)";
  }

  job_desc_msg_t job{};
  char* message = nullptr;

 private:
  static void set_array(char**& array,
                        std::uint32_t& size,
                        const std::vector<const char*>& entries) {
    free_array(array, size);
    array = static_cast<char**>(slurm_xcalloc(
        entries.size() + 1, sizeof(char*), true, false, __FILE__, __LINE__, __func__));
    size = static_cast<std::uint32_t>(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      array[i] = slurm_xstrdup(entries[i]);
    }
  }
  static void free_array(char** array, std::uint32_t size) {
    for (std::uint32_t i = 0; array != nullptr && i < size; ++i) {
      free_item(array[i]);
    }
    free_item(array);
  }
};

class Plugin {
 public:
  explicit Plugin(const char* path) : handle_(dlopen(path, RTLD_LAZY | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      std::fprintf(stderr, "job_submit_driver: %s\n", dlerror());
      std::exit(1);
    }
    submit_ = symbol<int (*)(job_desc_msg_t*, std::uint32_t, char**)>("job_submit");
    modify_ =
        symbol<int (*)(job_desc_msg_t*, void*, std::uint32_t ACB_JOB_MODIFY_MESSAGE)>("job_modify");
    expect(symbol<int (*)()>("init")() == SLURM_SUCCESS, "init fails");
    expect(std::string_view(symbol<const char*>("plugin_type")) == "job_submit/autocloud",
           "plugin_type is wrong");
    expect(*symbol<const std::uint32_t*>("plugin_version") == SLURM_VERSION_NUMBER,
           "plugin_version is wrong");
  }
  ~Plugin() {
    expect(symbol<int (*)()>("fini")() == SLURM_SUCCESS, "fini fails");
    dlclose(handle_);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  int submit(Job& job) const { return submit_(&job.job, 1000, &job.message); }
  int modify(Job& job, std::uint32_t user) const {
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return modify_(&job.job, nullptr, user, &job.message);
#else
    return modify_(&job.job, nullptr, user);
#endif
  }

 private:
  template <typename Pointer>
  Pointer symbol(const char* name) const {
    return reinterpret_cast<Pointer>(dlsym(handle_, name));
  }
  void* handle_;
  int (*submit_)(job_desc_msg_t*, std::uint32_t, char**) = nullptr;
  int (*modify_)(job_desc_msg_t*, void*, std::uint32_t ACB_JOB_MODIFY_MESSAGE) = nullptr;
};

bool is(const char* text, std::string_view wanted) {
  return text != nullptr && text == wanted;
}

void accepted(const Plugin& plugin) {
  Job job;
  job.label({"AUTOCLOUD_BURST=2", "AUTOCLOUD_MARKET=on-demand"});
  job.job.num_tasks = 4;
  job.job.min_cpus = 8;
  job.job.features = slurm_xstrdup("x");
  expect(plugin.submit(job) == SLURM_SUCCESS, "a good burst is refused");
  expect(is(job.job.partition, "batch-burst"), "partition");
  expect(is(job.job.features, "[(onprem&x)*2&(cloud&x)*2]"), "features");
  expect(is(job.job.batch_features, "onprem"), "batch features");
  expect(is(job.job.admin_comment, "autocloud:v1 burst=2 own=2 gpu=v100-32gb market=on-demand"),
         "admin comment");
  expect(job.job.min_nodes == 4 && job.job.max_nodes == 4, "nodes");
  expect(job.job.num_tasks == 8 && job.job.min_cpus == 16, "tasks and CPUs");
  expect(job.job.ntasks_per_node == 2, "tasks of each node");
  expect(job.job.kill_on_node_fail == 0, "kill_on_node_fail");
  expect(job.job.wait_all_nodes == 1, "wait_all_nodes");
  expect(job.job.requeue == 1, "requeue");
  expect(job.job.open_mode == OPEN_MODE_APPEND, "open mode");
  expect(job.variable("SLURM_NTASKS") == "(none)", "SLURM_NTASKS stays");
  expect(job.variable("SLURM_NPROCS") == "(none)", "SLURM_NPROCS stays");
  expect(job.variable("SLURM_NTASKS_PER_NODE") == "2", "SLURM_NTASKS_PER_NODE goes");
  expect(job.variable("HOME") == "/root", "HOME goes");
  expect(job.variable("SLURM_SPANK_AUTOCLOUD_BURST") == "2", "the label in the environment");
  expect(job.job.environment[job.job.env_size] == nullptr, "the environment's end");
}

void refused(const Plugin& plugin) {
  Job job;
  job.label({"AUTOCLOUD_BURST=2"});
  job.job.array_inx = slurm_xstrdup("0-3");
  const job_desc_msg_t before = job.job;
  expect(plugin.submit(job) == ESLURM_NOT_SUPPORTED, "an array's code");
  expect(is(job.message,
            "autocloud: --array: '0-3': not with --autocloud-burst: each task would rent its own "
            "nodes; submit one job per burst"),
         "an array's message");
  expect(std::memcmp(&before, &job.job, sizeof before) == 0, "a refused job is changed");
  Job forger;
  forger.label({"AUTOCLOUD_BURST=2"});
  forger.job.array_inx = slurm_xstrdup("0-3\n[2026-01-01T00:00:00] error: made up");
  expect(plugin.submit(forger) == ESLURM_NOT_SUPPORTED, "a forger's code");
  expect(forger.message != nullptr && std::strchr(forger.message, '\n') == nullptr,
         "a user's value writes a line of its own into slurmctld's log");
}

void plain(const Plugin& plugin) {
  Job job;
  const job_desc_msg_t before = job.job;
  errno = EINTR;
  expect(plugin.submit(job) == SLURM_SUCCESS, "a plain job is refused");
  expect(errno == EINTR, "errno is not kept");
  expect(job.message == nullptr, "a plain job gets a message");
  expect(std::memcmp(&before, &job.job, sizeof before) == 0, "a plain job is changed");
}

void intruder(const Plugin& plugin) {
  Job job;
  job.job.partition = slurm_xstrdup("batch,batch-burst");
  expect(plugin.submit(job) == ESLURM_ACCESS_DENIED, "the twin is open");
}

void changes(const Plugin& plugin, const std::filesystem::path& state) {
  slurm_conf.state_save_location = slurm_xstrdup(state.c_str());
  const auto folder = state / "hash.2" / "job.12";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "environment", std::ios::binary)
      << std::string_view("\1\0\0\0SLURM_SPANK_AUTOCLOUD_BURST=2\0", 34);
  struct Row {
    const char* id;
    const char* partition;
    std::uint32_t nodes;
    std::uint32_t user;
    int code;
  };
  for (const Row& row : {Row{"12", nullptr, 3, 1000, ESLURM_ACCESS_DENIED},
                         Row{"12", "other", NO_VAL, 1000, ESLURM_ACCESS_DENIED},
                         Row{"12", nullptr, NO_VAL, 1000, SLURM_SUCCESS},
                         Row{"12", nullptr, 3, 0, SLURM_SUCCESS},
                         Row{"13", nullptr, 3, 1000, SLURM_SUCCESS},
                         Row{"13", "batch-burst", NO_VAL, 1000, ESLURM_ACCESS_DENIED},
                         Row{"13", "batch-burst", NO_VAL, 0, SLURM_SUCCESS}}) {
    Job job;
    job.job.job_id_str = slurm_xstrdup(row.id);
    job.job.partition = row.partition == nullptr ? nullptr : slurm_xstrdup(row.partition);
    job.job.min_nodes = job.job.max_nodes = row.nodes;
    job.job.min_cpus = NO_VAL;
    expect(plugin.modify(job, row.user) == row.code,
           "change of job " + std::string(row.id) + " by user " + std::to_string(row.user));
  }
  free_item(slurm_conf.state_save_location);
  slurm_conf.state_save_location = nullptr;
}

void unreadable(const Plugin& plugin, const std::filesystem::path& config) {
  std::ofstream(config) << "[twins";
  Job job;
  job.label({"AUTOCLOUD_BURST=2"});
  expect(plugin.submit(job) == ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE,
         "a burst without settings");
  expect(job.message != nullptr && std::strstr(job.message, "cannot be read") != nullptr,
         "its message");
  plain(plugin);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: job_submit_driver PLUGIN CONFIG STATE\n");
    return 2;
  }
  const std::filesystem::path config = argv[2];
  std::ofstream(config) << "[burst]\nmax_nodes = 8\n[twins]\nbatch = \"batch-burst\"\n";
  {
    const Plugin plugin(argv[1]);
    accepted(plugin);
    refused(plugin);
    plain(plugin);
    intruder(plugin);
    changes(plugin, argv[3]);
    unreadable(plugin, config);
  }
  return failures == 0 ? 0 : 1;
}

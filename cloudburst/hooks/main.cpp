// SPDX-License-Identifier: Apache-2.0
// autocloud-resume, -suspend, -resumefail and -prolog: one program, told apart by the name it is
// called under, since Slurm takes a path without arguments for each. Slurm runs them without PATH,
// HOME or output, and with signals blocked.
#include "base/files.h"
#include "base/process.h"
#include "cloudburst/config/config.h"
#include "cloudburst/control/client.h"
#include "cloudburst/hooks/order.h"
#include "cloudburst/hooks/prolog.h"
#include "cloudburst/slurm/hostlist.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

namespace acb::cloud {
namespace {

// Far below the second in which a hook has to be done; the order is safe on disk by then.
constexpr std::chrono::milliseconds kPokeLimit{200};

constexpr const char* kUsage =
    "%s: called by slurmctld. In slurm.conf, with the whole path and no arguments:\n"
    "  ResumeProgram=/usr/libexec/autocloud-burst/autocloud-resume\n"
    "  SuspendProgram=/usr/libexec/autocloud-burst/autocloud-suspend\n"
    "  ResumeFailProgram=/usr/libexec/autocloud-burst/autocloud-resumefail\n"
    "  PrologSlurmctld=/usr/libexec/autocloud-burst/autocloud-prolog\n"
    "The site's own programs go into [hooks] of %s.\n";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// With 1 or 2 closed, the first file opened would become the output of every library.
void open_standard_descriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) {
    ::close(fd);
  }
}

void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

struct Loaded {
  Config config;
  bool knows_nodes = false;
};
Loaded load() {
  HookConfig loaded = load_hook_config(kConfigPath, Config().last_good());
  for (const std::string& wrong : loaded.wrong) {
    syslog(LOG_ERR, "%s", wrong.c_str());
  }
  const bool knows_nodes = !loaded.config.cloud_nodes.empty();
  return {std::move(loaded.config), knows_nodes};
}

// Becomes the site's own program; returns only if that fails.
int become(const std::string& program, const std::string& argument) {
  std::string path = program;
  std::string hosts = argument;
  char* arguments[] = {path.data(), hosts.empty() ? nullptr : hosts.data(), nullptr};
  ::execv(program.c_str(), arguments);
  syslog(LOG_ERR, "the site's hook %s: %s", program.c_str(), std::strerror(errno));
  return EXIT_FAILURE;
}

const std::string& site_hook(const Config& config, std::string_view kind) {
  if (kind == "suspend") {
    return config.suspend_hook;
  }
  return kind == "resumefail" ? config.resumefail_hook : config.resume_hook;
}

bool hand_over(const Config& config, const Order& order) {
  const auto written = write_order(config.inbox(), order);
  if (!written) {
    syslog(LOG_ERR,
           "%s of %s is lost: %s",
           order.kind.c_str(),
           order.hosts.c_str(),
           written.error().message.c_str());
  }
  static_cast<void>(control_call(config.socket(), {{"op", "poke"}}, kPokeLimit));
  return written.has_value();
}

int run_power_hook(const std::string& kind, const std::string& hosts) {
  Order order{kind, hosts, wall_now()};
  const Loaded loaded = load();
  bool sound = loaded.knows_nodes;
  HostShares shares{hosts, {}};
  if (sound) {
    if (auto parted = share_hosts(hosts, loaded.config.cloud_nodes)) {
      shares = std::move(*parted);
    } else {
      // The daemon knows its nodes and leaves out what is not: better than an order lost.
      syslog(LOG_ERR, "%s", parted.error().message.c_str());
      sound = false;
    }
  }
  if (!shares.ours.empty()) {
    order.hosts = shares.ours;
    sound = hand_over(loaded.config, order) && sound;
  }
  const std::string& site = site_hook(loaded.config, kind);
  if (!shares.others.empty() && site.empty()) {
    syslog(LOG_WARNING,
           "%s of %s: not ours, and [hooks] names no program for it",
           kind.c_str(),
           shares.others.c_str());
  }
  if (!shares.others.empty() && !site.empty()) {
    const int failure = become(site, shares.others);
    return failure;
  }
  return sound ? EXIT_SUCCESS : EXIT_FAILURE;
}

void wait_for_nodes(const Config& config) {
  const auto job = parse_integer("SLURM_JOB_ID", variable("SLURM_JOB_ID"), 1, INT64_MAX);
  if (!job) {
    syslog(LOG_ERR, "prolog: %s", job.error().message.c_str());
    return;
  }
  std::string count = variable("SLURM_JOB_RESTART_COUNT");
  if (count.empty()) {
    count = variable("SLURM_RESTART_COUNT");
  }
  const PrologWait wait{*job, parse_integer("restart", count, 0, INT32_MAX).value_or(-1)};
  const PrologWorld world{
      [&](const Json& request, std::chrono::milliseconds limit) {
        return control_call(config.socket(), request, limit);
      },
      [] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now().time_since_epoch());
      },
      [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }};
  if (wait_for_go(wait, world) == PrologEnd::no_daemon) {
    syslog(LOG_WARNING,
           "prolog: job %lld: autocloudd has not answered for 5 s; slurmctld starts the job by "
           "itself, up to 30 s after its last node",
           static_cast<long long>(*job));
  }
}

// Beside the waiting, as slurmctld itself runs a prolog beside the boot of the nodes.
int run_prolog() {
  const bool ours = !variable("SPANK_AUTOCLOUD_BURST").empty();
  const Loaded loaded = load();
  const std::string& site = loaded.config.prolog_hook;
  if (!ours) {
    if (!site.empty()) {
      static_cast<void>(become(site, {}));
    }
    return EXIT_SUCCESS;
  }
  pid_t child = -1;
  if (!site.empty()) {
    if (auto started = spawn({{site}})) {
      child = *started;
    } else {
      syslog(LOG_ERR, "prolog: %s", started.error().message.c_str());
    }
  }
  wait_for_nodes(loaded.config);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    return EXIT_SUCCESS;
  }
  return exit_code_of(status);
}

std::string kind_of(const char* called) {
  std::string_view name = called == nullptr ? "" : called;
  name = name.substr(name.rfind('/') + 1);
  constexpr std::string_view kPrefix = "autocloud-";
  return std::string(name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name);
}

int run(int argc, char** argv) {
  const std::string kind = kind_of(argv[0]);
  const bool asks_help =
      argc > 1 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0);
  if (asks_help) {
    std::printf(kUsage, argv[0], kConfigPath);
    return EXIT_SUCCESS;
  }
  if (kind == "prolog") {
    return run_prolog();
  }
  if ((kind != "resume" && kind != "suspend" && kind != "resumefail") || argc != 2) {
    std::fprintf(stderr, kUsage, argv[0], kConfigPath);
    syslog(
        LOG_ERR, "%s: called with %d arguments instead of one host list", kind.c_str(), argc - 1);
    return 2;
  }
  return run_power_hook(kind, argv[1]);
}

}  // namespace
}  // namespace acb::cloud

int main(int argc, char** argv) {
  acb::cloud::open_standard_descriptors();
  acb::cloud::unblock_signals();
  openlog(nullptr, LOG_PID, LOG_DAEMON);
  try {
    return acb::cloud::run(argc, argv);
  } catch (const std::exception& error) {
    syslog(LOG_ERR, "%s", error.what());
    // A prolog that fails would make slurmctld requeue a job of anybody.
    return acb::cloud::kind_of(argv[0]) == "prolog" ? EXIT_SUCCESS : EXIT_FAILURE;
  }
}

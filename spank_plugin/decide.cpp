// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/decide.h"

#include "base/text.h"
#include "spank_plugin/constraint.h"
#include "spank_plugin/label.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace acb::spank {

namespace {

constexpr std::uint64_t kLargestCount = std::numeric_limits<std::uint32_t>::max() / 4;

tl::unexpected<Error> refuse(const std::string& message) {
  return fail(ErrorCode::invalid, message);
}

/// What cannot go with a burst, whatever its value: what was given, why, and what to write.
struct Misfit {
  bool given;
  std::string_view option;
  std::string_view value;
  const char* why;
};

std::vector<Misfit> misfits_of(const JobRequest& job) {
  // cons_tres tests a job's total against each half alone, so that only per-node counts can hold.
  constexpr const char* kPerNode =
      "would have to be met by the own and by the rented nodes alone; write --gpus-per-node=K";
  const bool per_task = job.per_task.find("gres") != std::string::npos ||
                        job.per_task.find("gpu") != std::string::npos;
  return {
      {!job.array.empty(),
       "--array",
       job.array,
       "each task would rent its own nodes; submit one job per burst"},
      {job.heterogeneous, "heterogeneous job", "", "a burst is one job; submit it without ':'"},
      {job.scrontab, "scrontab", "", "let the entry call sbatch --autocloud-burst=N"},
      {!job.required_nodes.empty(),
       "--nodelist",
       job.required_nodes,
       "Slurm picks both halves of a burst; use --constraint=FEATURE"},
      {!job.excluded_nodes.empty(),
       "--exclude",
       job.excluded_nodes,
       "Slurm picks both halves of a burst; use --constraint=FEATURE"},
      {!job.reservation.empty(),
       "--reservation",
       job.reservation,
       "rented nodes are in no reservation; submit without it"},
      {!job.prefer.empty(),
       "--prefer",
       job.prefer,
       "it would replace the burst's constraint; use --constraint=FEATURE"},
      {!job.per_job.empty(), "--gpus", job.per_job, kPerNode},
      {!job.per_socket.empty(), "--gpus-per-socket", job.per_socket, kPerNode},
      {per_task, "--gpus-per-task", job.per_task, kPerNode},
      {job.tasks_per_gpu.has_value(),
       "--ntasks-per-gpu",
       "",
       "write --gpus-per-node=K --ntasks-per-node=T"},
      {job.contiguous, "--contiguous", "", "own and rented nodes are not; submit without it"},
      {job.switches, "--switches", "", "own and rented nodes share none; submit without it"},
      {job.infinite_time,
       "--time",
       "infinite",
       "what is rented would be billed without an end; write --time=HH:MM:SS"},
  };
}

Status check_misfits(const JobRequest& job) {
  for (const Misfit& misfit : misfits_of(job)) {
    if (!misfit.given) {
      continue;
    }
    std::string message = std::string(misfit.option) + ": ";
    if (!misfit.value.empty()) {
      message += "'" + std::string(misfit.value) + "': ";
    }
    return refuse(message + "not with --autocloud-burst: " + misfit.why);
  }
  return {};
}

/// M, the own nodes.
Result<std::uint32_t> own_nodes(const JobRequest& job) {
  if (!job.min_nodes) {
    // --ntasks-per-node alone arrives as that many tasks in all (22.05).
    if (job.tasks && (!job.tasks_per_node || *job.tasks != *job.tasks_per_node)) {
      return refuse("--ntasks: '" + std::to_string(*job.tasks) +
                    "': with --autocloud-burst it needs --nodes=M, the own nodes that it is for");
    }
    return 1U;
  }
  if (*job.min_nodes == 0) {
    return refuse("--nodes: '0': a burst needs an own node for its script; write --nodes=1");
  }
  if (job.max_nodes && *job.max_nodes != *job.min_nodes) {
    return refuse("--nodes: '" + std::to_string(*job.min_nodes) + "-" +
                  std::to_string(*job.max_nodes) +
                  "': a burst has a fixed number of own nodes; write --nodes=M");
  }
  return *job.min_nodes;
}

struct Sizes {
  std::uint32_t own = 0;
  std::uint32_t cloud = 0;
  [[nodiscard]] std::uint64_t all() const { return std::uint64_t{own} + cloud; }
};

/// A count for the own nodes grown to all nodes, rounded up.
Result<std::uint32_t> grown(std::string_view what, std::uint32_t count, const Sizes& sizes) {
  const std::uint64_t all = (count * sizes.all() + sizes.own - 1) / sizes.own;
  if (all > kLargestCount) {
    return refuse(std::string(what) + ": '" + std::to_string(count) + "': too many for " +
                  std::to_string(sizes.all()) + " nodes");
  }
  return static_cast<std::uint32_t>(all);
}

Status scale_tasks(const JobRequest& job, const Sizes& sizes, Rewrite& rewrite) {
  if (!job.batch && (job.tasks || job.tasks_per_node)) {
    // salloc has its shell's SLURM_NTASKS made before the controller is asked.
    return refuse(
        std::string(job.tasks_per_node ? "--ntasks-per-node" : "--ntasks") +
        ": not in salloc --autocloud-burst: its shell would keep the count of the own nodes alone; "
        "give it to srun or mpirun in the allocation, or use sbatch");
  }
  if (job.tasks) {
    if (*job.tasks % sizes.own != 0) {
      return refuse("--ntasks: '" + std::to_string(*job.tasks) +
                    "': must be a multiple of --nodes=" + std::to_string(sizes.own) +
                    ", so that every node gets the same; or write "
                    "--ntasks-per-node=T");
    }
    ACB_TRY_ASSIGN(rewrite.tasks, grown("--ntasks", *job.tasks, sizes));
    const std::uint32_t each = *job.tasks / sizes.own;
    if (!job.tasks_per_node && std::in_range<std::uint16_t>(each)) {
      rewrite.tasks_per_node = static_cast<std::uint16_t>(each);
    }
  }
  if (job.min_cpus) {
    ACB_TRY_ASSIGN(rewrite.min_cpus, grown("CPUs", *job.min_cpus, sizes));
  }
  return {};
}

Result<std::string> twin_of(const JobRequest& job, const SiteConfig& config) {
  const std::string& partition = job.partition.empty() ? config.default_partition : job.partition;
  if (partition.find(',') != std::string::npos) {
    return refuse("--partition: '" + partition +
                  "': a burst runs in the twin of one partition; name one");
  }
  const auto twin = config.twins.find(partition);
  if (twin != config.twins.end()) {
    return twin->second;
  }
  std::vector<std::string> known;
  for (const auto& [name, unused] : config.twins) {
    known.push_back(name);
  }
  return refuse("--partition: '" + partition + "': has no burst twin" +
                (known.empty() ? "; nor has any other" : "; these have: " + join(known, ", ")));
}

void add_environment(const BurstRecord& record, Rewrite& rewrite) {
  // Kept, they would be the client's count; slurmd sets them from the job where they are missing.
  if (rewrite.tasks) {
    rewrite.drop = {"SLURM_NTASKS", "SLURM_NPROCS"};
  }
  const std::string prefix = kJobPrefix;
  rewrite.set = {{prefix + kLabelBurst, std::to_string(record.burst)},
                 {prefix + kLabelGpu, record.gpu},
                 {prefix + kLabelMarket, std::string(name_of(record.market))}};
}

Result<Rewrite> rewrite_of(const JobRequest& job,
                           const BurstOptions& options,
                           const SiteConfig& config) {
  ACB_TRY(check_misfits(job));
  Rewrite rewrite;
  ACB_TRY_ASSIGN(rewrite.partition, twin_of(job, config));
  Sizes sizes;
  ACB_TRY_ASSIGN(sizes.own, own_nodes(job));
  sizes.cloud = static_cast<std::uint32_t>(options.nodes);
  ACB_TRY_ASSIGN(rewrite.nodes, grown("--nodes", sizes.own, sizes));
  ACB_TRY_ASSIGN(
      rewrite.features,
      fold_constraint(
          job.features,
          {config.own_feature, config.cloud_feature, static_cast<int>(sizes.own), options.nodes}));
  ACB_TRY(scale_tasks(job, sizes, rewrite));
  if (!job.batch_features.empty() && job.batch_features != config.own_feature) {
    return refuse("--batch: '" + job.batch_features + "': a burst's script runs on an own node (" +
                  config.own_feature + "); submit without it");
  }
  const BurstRecord record{.burst = options.nodes,
                           .own = static_cast<int>(sizes.own),
                           .gpu = options.gpu.value_or(config.limits.gpu_types.front()),
                           .market = options.market.value_or(config.market)};
  rewrite.admin_comment = format_record(record);
  if (job.batch) {
    rewrite.batch_features = config.own_feature;
    rewrite.requeue = job.requeue.value_or(true);
    rewrite.append_output = !job.open_mode_given;
    add_environment(record, rewrite);
  }
  return rewrite;
}

std::optional<std::string> twin_in(std::string_view partitions, const Site& site) {
  if (!site.config) {
    return std::nullopt;
  }
  for (const std::string& name : split(partitions, ',')) {
    if (site.config->is_twin(name)) {
      return name;
    }
  }
  return std::nullopt;
}

Refusal closed(const std::string& twin) {
  return {RefusalKind::forbidden,
          "autocloud: --partition: '" + twin +
              "': only bursts run there; submit to its own partition with --autocloud-burst=N"};
}

}  // namespace

Decision decide_submit(const JobRequest& request, const Site& site) {
  if (const auto twin = twin_in(request.partition, site)) {
    return closed(*twin);
  }
  const auto refused = [](const Error& error) {
    return Refusal{RefusalKind::bad_request, "autocloud: " + error.message};
  };
  const auto label = read_label(request.label);
  if (!label) {
    return refused(label.error());
  }
  if (!label->burst) {
    return Untouched{};
  }
  if (!site.error.empty() || !site.config) {
    return Refusal{RefusalKind::no_config,
                   "autocloud: no burst can start now: the site's settings cannot be read: " +
                       site.error + "; tell your administrator"};
  }
  const auto options = parse_options(*label, site.config->limits);
  if (!options) {
    return refused(options.error());
  }
  const auto rewrite = rewrite_of(request, **options, *site.config);
  if (!rewrite) {
    return refused(rewrite.error());
  }
  return *rewrite;
}

std::optional<Refusal> decide_move(const JobChange& change, const Site& site) {
  if (change.privileged || change.partition.empty()) {
    return std::nullopt;
  }
  if (const auto twin = twin_in(change.partition, site)) {
    return closed(*twin);
  }
  return std::nullopt;
}

bool needs_ownership(const JobChange& change) {
  return !change.privileged && !change.fixed.empty();
}

Refusal refuse_change_of_burst(const JobChange& change) {
  return {RefusalKind::forbidden,
          "autocloud: " + std::string(change.fixed) +
              ": cannot be changed in a burst; cancel it and submit it again"};
}

}  // namespace acb::spank

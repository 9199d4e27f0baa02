// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/supervise/nodes.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace acb::train {

namespace {

constexpr std::size_t kMostNodes = 65536;
constexpr int kMostPerNode = 1 << 20;

tl::unexpected<Error> bad_hostlist(std::string_view text) {
  return fail(ErrorCode::invalid,
              "host list: " + std::string(text) + ": must read like node1,node[2-4,7]");
}

// Splits at commas outside of brackets.
std::vector<std::string> split_hosts(std::string_view text) {
  std::vector<std::string> hosts(1);
  bool inside = false;
  for (const char c : text) {
    inside = c == '[' || (inside && c != ']');
    if (c == ',' && !inside) {
      hosts.emplace_back();
    } else {
      hosts.back().push_back(c);
    }
  }
  return hosts;
}

// "0-1,07-08" as 0 1 07 08.
Result<std::vector<std::string>> expand_ranges(std::string_view ranges) {
  std::vector<std::string> numbers;
  for (const std::string& range : split(ranges, ',')) {
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
    constexpr std::int64_t kMost = 999'999'999;
    ACB_TRY_ASSIGN(const std::int64_t from, parse_integer("host list", first, 0, kMost));
    ACB_TRY_ASSIGN(const std::int64_t to, parse_integer("host list", last, from, kMost));
    if (static_cast<std::size_t>(to - from) >= kMostNodes) {
      return bad_hostlist(ranges);
    }
    for (std::int64_t number = from; number <= to; ++number) {
      std::string digits = std::to_string(number);
      digits.insert(0, first.size() - std::min(first.size(), digits.size()), '0');
      numbers.push_back(std::move(digits));
    }
  }
  return numbers;
}

Result<std::vector<std::string>> expand_host(std::string_view host) {
  std::vector<std::string> names = {""};
  while (!host.empty()) {
    const std::size_t open = host.find('[');
    const std::size_t close = host.find(']');
    for (std::string& name : names) {
      name += host.substr(0, open);
    }
    if (open == std::string_view::npos) {
      break;
    }
    if (close == std::string_view::npos || close < open) {
      return bad_hostlist(host);
    }
    ACB_TRY_ASSIGN(const auto numbers, expand_ranges(host.substr(open + 1, close - open - 1)));
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& number : numbers) {
        longer.push_back(name + number);
      }
    }
    if (longer.size() > kMostNodes) {
      return bad_hostlist(host);
    }
    names = std::move(longer);
    host.remove_prefix(close + 1);
  }
  return names;
}

// Where the value of a count of ranks stands, 0 if none is given. Options of Open MPI's mpirun that
// take one value are skipped with it; the first other word is the program.
constexpr std::array<std::string_view, 27> kOneValue = {"-x",           "-H",
                                                        "--host",       "-host",
                                                        "--hostfile",   "-hostfile",
                                                        "-machinefile", "--machinefile",
                                                        "--map-by",     "-map-by",
                                                        "--bind-to",    "-bind-to",
                                                        "--rank-by",    "-rank-by",
                                                        "-wdir",        "--wdir",
                                                        "--prefix",     "-prefix",
                                                        "-npernode",    "--npernode",
                                                        "-N",           "--output-filename",
                                                        "-rf",          "--rankfile",
                                                        "--stdin",      "-stdin",
                                                        "--timeout"};
constexpr std::array<std::string_view, 5> kRankCount = {"-n", "-np", "--np", "-c", "--n"};
constexpr std::array<std::string_view, 6> kTwoValues = {
    "--mca", "-mca", "--gmca", "-gmca", "--prtemca", "--pmixmca"};

template <std::size_t n>
bool among(const std::array<std::string_view, n>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct OwnOptions {
  std::size_t rank_count = 0;
  bool exports = false;
};

OwnOptions own_options(const std::vector<std::string>& arguments) {
  OwnOptions found;
  std::size_t i = 1;
  while (i < arguments.size() && arguments[i].starts_with('-')) {
    const std::string& word = arguments[i];
    found.exports = found.exports || word == "-x";
    if (among(kRankCount, word)) {
      found.rank_count = i + 1 < arguments.size() ? i + 1 : 0;
    }
    if (among(kTwoValues, word)) {
      i += 3;
    } else {
      i += among(kRankCount, word) || among(kOneValue, word) ? 2 : 1;
    }
  }
  return found;
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string& host : split_hosts(text)) {
    if (host.empty()) {
      return bad_hostlist(text);
    }
    ACB_TRY_ASSIGN(const auto expanded, expand_host(host));
    names.insert(names.end(), expanded.begin(), expanded.end());
    if (names.size() > kMostNodes) {
      return bad_hostlist(text);
    }
  }
  return names;
}

Result<std::vector<int>> parse_counts(std::string_view what, std::string_view text) {
  std::vector<int> counts;
  for (const std::string& piece : split(text, ',')) {
    std::string_view number = piece;
    std::int64_t times = 1;
    if (const std::size_t open = piece.find("(x"); open != std::string::npos) {
      if (!piece.ends_with(')')) {
        return fail(ErrorCode::invalid,
                    std::string(what) + ": " + std::string(text) + ": must read like 2(x3),1");
      }
      number = std::string_view(piece).substr(0, open);
      ACB_TRY_ASSIGN(
          times,
          parse_integer(what, piece.substr(open + 2, piece.size() - open - 3), 1, kMostNodes));
    }
    ACB_TRY_ASSIGN(const std::int64_t count, parse_integer(what, number, 0, kMostPerNode));
    counts.insert(counts.end(), static_cast<std::size_t>(times), static_cast<int>(count));
  }
  return counts;
}

std::string format_counts(const std::vector<int>& counts) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i;
    while (end < counts.size() && counts[end] == counts[i]) {
      ++end;
    }
    const std::string times = end - i > 1 ? "(x" + std::to_string(end - i) + ")" : "";
    pieces.push_back(std::to_string(counts[i]) + times);
    i = end;
  }
  return join(pieces, ",");
}

Result<std::vector<NodeShare>> parse_allocation(
    const std::map<std::string, std::string>& environment) {
  const auto nodelist = environment.find("SLURM_JOB_NODELIST");
  if (nodelist == environment.end()) {
    return fail(ErrorCode::not_found, "SLURM_JOB_NODELIST is not set");
  }
  ACB_TRY_ASSIGN(const auto names, expand_hostlist(nodelist->second));
  const auto counts_of = [&](const char* variable) -> Result<std::vector<int>> {
    const auto found = environment.find(variable);
    if (found == environment.end()) {
      return std::vector<int>(names.size(), 1);
    }
    ACB_TRY_ASSIGN(auto counts, parse_counts(variable, found->second));
    if (counts.size() != names.size()) {
      return fail(ErrorCode::invalid,
                  std::string(variable) + ": " + found->second + ": " +
                      std::to_string(counts.size()) + " counts for " +
                      std::to_string(names.size()) + " nodes");
    }
    return counts;
  };
  ACB_TRY_ASSIGN(const auto tasks, counts_of("SLURM_TASKS_PER_NODE"));
  ACB_TRY_ASSIGN(const auto cpus, counts_of("SLURM_JOB_CPUS_PER_NODE"));
  std::vector<NodeShare> nodes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    nodes.push_back({names[i], tasks[i], cpus[i]});
  }
  return nodes;
}

EnvironmentChange environment_for(const std::vector<NodeShare>& nodes) {
  std::vector<std::string> names;
  std::vector<int> tasks;
  std::vector<int> cpus;
  for (const NodeShare& node : nodes) {
    names.push_back(node.name);
    tasks.push_back(node.tasks);
    cpus.push_back(node.cpus);
  }
  const std::string list = join(names, ",");
  const std::string count = std::to_string(nodes.size());
  const std::string ranks = std::to_string(std::accumulate(tasks.begin(), tasks.end(), 0));
  return {{"SLURM_JOB_NODELIST", list},
          {"SLURM_NODELIST", list},
          {"SLURM_JOB_NUM_NODES", count},
          {"SLURM_NNODES", count},
          {"SLURM_TASKS_PER_NODE", format_counts(tasks)},
          {"SLURM_JOB_CPUS_PER_NODE", format_counts(cpus)},
          {"SLURM_NTASKS", ranks},
          {"SLURM_NPROCS", ranks},
          {"SLURM_OVERLAP", "1"}};
}

std::vector<std::string> fit_ranks(std::vector<std::string> arguments, int slots) {
  const std::size_t place = own_options(arguments).rank_count;
  if (place != 0) {
    const auto wanted = parse_integer("ranks", arguments[place], 1, kMostPerNode);
    if (wanted && *wanted > slots) {
      arguments[place] = std::to_string(slots);
    }
  }
  return arguments;
}

bool exports_variables(const std::vector<std::string>& arguments) {
  return own_options(arguments).exports;
}

}  // namespace acb::train

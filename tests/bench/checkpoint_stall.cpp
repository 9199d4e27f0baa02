// SPDX-License-Identifier: Apache-2.0
// checkpoint_stall FOLDER JSON: the pause that training sees for a save to disk beside training,
// and for one that it waits for, with 48 MiB of state on one rank. Medians of five.
#include "base/files.h"
#include "mpi_runtime/checkpoint/checkpoint.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace acb::train {
namespace {

constexpr std::size_t kElements = std::size_t{12} << 20;

template <typename Work>
double milliseconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Status run(const char* folder, const char* json_path) {
  const auto comm = std::move(make_thread_ranks(1).front());
  CheckpointConfig config;
  config.shared = folder;
  config.interval_s = 1e-9;  // after every step that finds none under way
  config.node = "bench";
  config.run = "bench";
  ACB_TRY_ASSIGN(const auto checkpointer, Checkpointer::open(*comm, config));
  std::vector<float> values(kElements, 1.0F);
  const std::vector<TensorSpec> layout = {{"w", {static_cast<std::int64_t>(kElements)}, 0}};
  ACB_TRY(checkpointer->add({"weights", slice_parts(layout, {0, kElements}, values)}));
  std::vector<double> beside;
  std::vector<double> waited;
  Status result;
  for (std::int64_t step = 1; step <= 12 && result; step += 2) {
    const double first = milliseconds([&] { result = checkpointer->after_step(step); });
    ACB_TRY(checkpointer->finish());
    const double second =
        milliseconds([&] { result = checkpointer->save_now(step + 1, SaveReason::leaving); });
    if (step > 1) {  // the first one also claims the snapshot's memory
      beside.push_back(first);
      waited.push_back(second);
    }
  }
  ACB_TRY(result);
  const double stall = median(beside);
  const double wait = median(waited);
  std::printf("%-34s %10.1f ms\n%-34s %10.1f ms\n",
              "stall, beside training",
              stall,
              "stall, waiting for the commit",
              wait);
  const Json row = {{"name", "checkpoint.stall"},
                    {"value", stall},
                    {"unit", "ms"},
                    {"beside", "a save that training waits for"},
                    {"beside_value", wait},
                    {"ratio", wait / stall}};
  return write_file(json_path, dump_json(Json::array({row}), 2) + "\n");
}

}  // namespace
}  // namespace acb::train

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: checkpoint_stall FOLDER JSON\n");
    return 2;
  }
  if (const auto done = acb::train::run(argv[1], argv[2]); !done) {
    std::fprintf(stderr, "checkpoint_stall: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/config/train_config.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace acb::train {
namespace {

using C = TrainConfig;
constexpr double kMost = 1e12;

Setting<C> precision_setting() {
  return {"train.precision",
          "what matrix products read: fp32 or bf16 (sums and weights stay fp32)",
          [](C& config, std::string_view key, const std::vector<std::string>& values) -> Status {
            if (values == std::vector<std::string>{"fp32"}) {
              config.precision = Precision::fp32;
            } else if (values == std::vector<std::string>{"bf16"}) {
              config.precision = Precision::bf16;
            } else {
              return fail(ErrorCode::invalid,
                          std::string(key) + ": '" + join(values, " ") + "': must be fp32 or bf16");
            }
            return {};
          },
          [](const C& config) {
            return std::string(config.precision == Precision::bf16 ? "bf16" : "fp32");
          }};
}

std::vector<Setting<C>> model_rows() {
  return {integer_setting("model.layers", &C::layers, 1, 1000, "transformer blocks"),
          integer_setting("model.heads", &C::heads, 1, 1000, "attention heads; divide the width"),
          integer_setting("model.width", &C::width, 1, 65536, "elements of the residual stream"),
          integer_setting("model.context", &C::context, 1, 65536, "tokens a sequence")};
}

std::vector<Setting<C>> train_rows() {
  return {
      integer_setting("train.steps", &C::steps, 1, 1'000'000'000, "optimizer steps of the run"),
      integer_setting("train.slots",
                      &C::slots,
                      0,
                      1 << 20,
                      "equal shares of a step that ranks divide among them; 0: the least multiple "
                      "of 24 that is at least train.largest_size"),
      integer_setting("train.largest_size",
                      &C::largest_size,
                      1,
                      1 << 20,
                      "most ranks that the run will ever have; counts where train.slots is 0"),
      integer_setting("train.micro_batches", &C::micro_batches, 1, 1 << 20, "of a slot, in turn"),
      integer_setting("train.micro_batch", &C::micro_batch, 1, 1 << 20, "sequences at a time"),
      number_setting("train.learning_rate", &C::learning_rate, 0, 10, "after the warm-up"),
      number_setting(
          "train.least_learning_rate", &C::least_learning_rate, 0, 10, "at the end of the cosine"),
      integer_setting("train.warmup_steps", &C::warmup_steps, 0, 1'000'000'000, "linear, from 0"),
      number_setting("train.weight_decay", &C::weight_decay, 0, 10, "of matrices, decoupled"),
      number_setting("train.beta1", &C::beta1, 0, 0.999999, "Adam: decay of the first moment"),
      number_setting("train.beta2", &C::beta2, 0, 0.999999, "Adam: decay of the second moment"),
      number_setting("train.clip", &C::clip, 0, 1e9, "largest global gradient norm; 0: none"),
      number_setting("train.dropout", &C::dropout, 0, 0.99, "probability of dropping a value"),
      integer_setting(
          "train.seed", &C::seed, 0, std::int64_t{1} << 62, "of weights, sample order and dropout"),
      precision_setting(),
      integer_setting(
          "train.threads",
          &C::threads,
          0,
          4096,
          "threads a rank; 0: its share of the node's CPUs; weights do not depend on it"),
      integer_setting("train.most_skipped",
                      &C::most_skipped,
                      0,
                      1'000'000,
                      "end the run after more steps in a row than this without a finite gradient")};
}

std::vector<Setting<C>> run_rows() {
  return {text_setting("data.path", &C::data, "text (bytes are tokens) or token file to train on"),
          text_setting("run.folder", &C::run_folder, "final checkpoint, seen by all ranks"),
          number_setting("run.time_limit_s",
                         &C::time_limit_s,
                         0,
                         kMost,
                         "save and exit before this; 0: SLURM_JOB_END_TIME where it is set. Under "
                         "autocloud-run it decides and this is not used"),
          number_setting("run.leave_before_s",
                         &C::leave_before_s,
                         0,
                         kMost,
                         "seconds before the time limit at which saving begins"),
          text_setting("checkpoint.local", &C::local, "folder on the node's own disk; empty: none"),
          text_setting("checkpoint.shared",
                       &C::shared,
                       "folder that all nodes see; empty: checkpoints in run.folder"),
          integer_setting("checkpoint.memory_every",
                          &C::memory_every,
                          1,
                          1'000'000,
                          "steps between saves to the nodes' memory"),
          number_setting("checkpoint.interval_s",
                         &C::interval_s,
                         0,
                         kMost,
                         "seconds between saves to disk; 0: from what saves and incidents cost"),
          integer_setting("checkpoint.keep", &C::keep, 2, 1000, "checkpoints kept on a disk")};
}

/// Settings that change no number.
constexpr std::array<std::string_view, 3> kNeutral{
    "train.threads", "train.largest_size", "train.most_skipped"};
bool changes_numbers(std::string_view key) {
  return (key.starts_with("model.") || key.starts_with("train.")) &&
         std::find(kNeutral.begin(), kNeutral.end(), key) == kNeutral.end();
}

}  // namespace

const std::vector<Setting<TrainConfig>>& train_settings() {
  static const auto rows = [] {
    auto all = model_rows();
    for (auto& more : {train_rows(), run_rows()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return rows;
}

int slots_of(const TrainConfig& config) {
  return config.slots > 0 ? config.slots : (config.largest_size + 23) / 24 * 24;
}

Status check_config(const TrainConfig& config) {
  if (config.width % config.heads != 0) {
    return fail(ErrorCode::invalid,
                "model.width: " + std::to_string(config.width) +
                    ": must be a multiple of model.heads, " + std::to_string(config.heads));
  }
  if (config.data.empty()) {
    return fail(ErrorCode::invalid, "data.path: nothing given: name a text or token file");
  }
  if (config.least_learning_rate > config.learning_rate) {
    return fail(ErrorCode::invalid,
                "train.least_learning_rate: " + format_number(config.least_learning_rate) +
                    ": must be at most train.learning_rate, " +
                    format_number(config.learning_rate));
  }
  if (config.warmup_steps > config.steps) {
    return fail(ErrorCode::invalid,
                "train.warmup_steps: " + std::to_string(config.warmup_steps) +
                    ": must be at most train.steps, " + std::to_string(config.steps));
  }
  return {};
}

std::map<std::string, std::string> number_settings(const TrainConfig& config) {
  TrainConfig canonical = config;
  canonical.slots = slots_of(config);
  std::map<std::string, std::string> found;
  for (const auto& row : train_settings()) {
    if (changes_numbers(row.key)) {
      found[row.key] = row.get(canonical);
    }
  }
  return found;
}

std::string settings_hash(const TrainConfig& config) {
  std::string text;
  for (const auto& [key, value] : number_settings(config)) {
    text += key;
    text += "=" + value + "\n";
  }
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  return to_hex({reinterpret_cast<const char*>(bytes.digest), sizeof(bytes.digest)});
}

}  // namespace acb::train

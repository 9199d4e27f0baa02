// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/train/trainer.h"

#include "base/files.h"
#include "mpi_runtime/checkpoint/shard.h"
#include "mpi_runtime/ops/cpu_ops.h"
#include "mpi_runtime/optim/schedule.h"

#include <fmt/format.h>

#include <cmath>

namespace acb::train {
namespace {

ModelShape shape_of(const TrainConfig& config, const Dataset& data) {
  return {.layers = config.layers,
          .heads = config.heads,
          .width = config.width,
          .context = config.context,
          .vocab = data.vocab()};
}

std::size_t windows_of(const TrainConfig& config, const Dataset& data) {
  return window_count(data.size(), static_cast<std::size_t>(config.context));
}

}  // namespace

std::string build_id() {
  const auto program = read_file("/proc/self/exe");
  return program ? fmt::format("{:016x}", checksum(std::as_bytes(std::span(*program)))) : "unknown";
}

std::string difference_of_devices(std::span<const std::string> devices, const std::string& before) {
  for (std::size_t rank = 1; rank < devices.size(); ++rank) {
    if (devices[rank] != devices[0]) {
      return fmt::format("device {} on rank {}, {} on rank 0", devices[rank], rank, devices[0]);
    }
  }
  return before.empty() || before == devices[0]
             ? ""
             : "device " + devices[0] + " here, " + before + " in the steps before";
}

Result<std::unique_ptr<Trainer>> Trainer::create(Communicator& comm,
                                                 const TrainConfig& config,
                                                 const Dataset& data) {
  if (comm.size() > slots_of(config)) {
    return fail(ErrorCode::invalid,
                "train: " + std::to_string(comm.size()) + " ranks: at most " +
                    std::to_string(slots_of(config)) +
                    ", the run's slots; start a run with a larger train.largest_size");
  }
  if (windows_of(config, data) == 0) {
    return fail(ErrorCode::invalid,
                "data: " + config.data.string() + ": " + std::to_string(data.size()) +
                    " tokens: must be more than model.context, " + std::to_string(config.context));
  }
  return std::unique_ptr<Trainer>(new Trainer(comm, config, data));
}

Trainer::Trainer(Communicator& comm, const TrainConfig& config, const Dataset& data)
    : comm_(comm),
      config_(config),
      data_(data),
      shape_(shape_of(config, data)),
      layout_(gpt2_layout(shape_)),
      reducer_(comm, static_cast<std::size_t>(slots_of(config)), flat_size(layout_)),
      order_(static_cast<std::uint64_t>(config.seed), windows_of(config, data)),
      weights_(flat_size(layout_)),
      optimizer_({.beta1 = config.beta1,
                  .beta2 = config.beta2,
                  .weight_decay = config.weight_decay,
                  .clip = config.clip},
                 layout_,
                 reducer_.slice()),
      sum_(reducer_.slice().size()) {}

std::int64_t Trainer::tokens_per_step() const {
  return std::int64_t{slots_of(config_)} * config_.micro_batches * config_.micro_batch *
         config_.context;
}

std::vector<Section> Trainer::sections() {
  const Range slice = reducer_.slice();
  const auto owned = std::span(weights_).subspan(slice.begin, slice.size());
  return {{.name = "weights", .parts = slice_parts(layout_, slice, owned)},
          {.name = "adam.m", .parts = slice_parts(layout_, slice, optimizer_.first_moment())},
          {.name = "adam.v", .parts = slice_parts(layout_, slice, optimizer_.second_moment())},
          {.name = "progress",
           .save = [this] { return save_progress(); },
           .load = [this](const Json& json) { return load_progress(json); }}};
}

Json Trainer::save_progress() const {
  return {{"step", progress_.step},
          {"updates", progress_.updates},
          {"skipped_in_a_row", progress_.skipped_in_a_row},
          {"sample", progress_.sample},
          {"isa", name_of(isa_)},
          {"device", device_}};
}

Status Trainer::load_progress(const Json& json) {
  const std::string isa_name = json_or<std::string>(json, "isa", "");
  ACB_TRY_ASSIGN(const Isa isa, parse_isa(isa_name));
  progress_ = {.step = json_or<std::int64_t>(json, "step", 0),
               .updates = json_or<std::int64_t>(json, "updates", 0),
               .skipped_in_a_row = json_or<std::int64_t>(json, "skipped_in_a_row", 0),
               .sample = json_or<std::uint64_t>(json, "sample", 0),
               .isa = isa,
               .device = json_or<std::string>(json, "device", "")};
  return {};
}

Status Trainer::settle_isa() {
  ACB_TRY_ASSIGN(const std::int64_t lowest,
                 largest(comm_, -static_cast<std::int64_t>(detect_isa())));
  isa_ = static_cast<Isa>(-lowest);
  if (progress_.isa && *progress_.isa < isa_) {
    isa_ = *progress_.isa;
  } else if (progress_.isa && isa_ < *progress_.isa) {
    inexact_reason_ = "instruction set " + std::string(name_of(isa_)) + " here, " +
                      std::string(name_of(*progress_.isa)) + " in the steps before";
  }
  return set_isa(isa_);
}

Status Trainer::compare_devices() {
  ACB_TRY_ASSIGN(const std::vector<std::string> devices, gather_texts(comm_, device_));
  device_ = devices.front();
  if (inexact_reason_.empty()) {
    inexact_reason_ = difference_of_devices(devices, progress_.device);
  }
  return {};
}

Status Trainer::start() {
  if (!progress_.isa) {  // nothing was loaded
    initialise_weights(shape_, static_cast<std::uint64_t>(config_.seed), weights_);
  }
  ACB_TRY(settle_isa());
  ACB_TRY(compare_devices());
  ACB_TRY_ASSIGN(ops_, make_cpu_ops(config_.threads, config_.precision));
  model_ = std::make_unique<Gpt2>(
      shape_, config_.micro_batch, static_cast<float>(config_.dropout), config_.precision, *ops_);
  gradient_ = ops_->allocate(weights_.size());
  ACB_TRY(all_gather(comm_, weights_));
  model_->set_weights(weights_.data());
  return {};
}

Result<StepResult> Trainer::step() {
  ++progress_.step;
  std::vector<double> losses;
  for (std::size_t slot = reducer_.slots().begin; slot < reducer_.slots().end; ++slot) {
    losses.push_back(slot_gradient(slot));
    ACB_TRY(reducer_.add(slot, {gradient_.get(), weights_.size()}));
  }
  ACB_TRY(ops_->status());
  progress_.sample += static_cast<std::uint64_t>(tokens_per_step() / config_.context);
  ACB_TRY(reducer_.finish(sum_));
  ACB_TRY_ASSIGN(const double loss, tree_sum(comm_, losses));
  ACB_TRY_ASSIGN(const double square, tree_sum(comm_, block_squares(sum_)));
  StepResult result{.step = progress_.step,
                    .loss = loss / static_cast<double>(tokens_per_step()),
                    .gradient_norm = std::sqrt(square)};
  result.skipped = !std::isfinite(loss) || !std::isfinite(square);
  if (!result.skipped) {
    progress_.skipped_in_a_row = 0;
    ACB_TRY(apply(sum_, result.gradient_norm));
  } else if (++progress_.skipped_in_a_row > config_.most_skipped) {
    return fail(ErrorCode::invalid,
                "train: step " + std::to_string(progress_.step) + ": " +
                    std::to_string(progress_.skipped_in_a_row) +
                    " steps in a row without a finite gradient (train.most_skipped); a lower "
                    "train.learning_rate or train.clip may help");
  }
  return result;
}

/// Leaves the slot's gradient in gradient_ and returns the sum of its losses.
double Trainer::slot_gradient(std::size_t slot) {
  ops_->zero(weights_.size(), gradient_.get());
  const auto batch = static_cast<std::uint64_t>(config_.micro_batch);
  const auto batches = static_cast<std::uint64_t>(config_.micro_batches);
  double loss = 0;
  for (std::uint64_t number = 0; number < batches; ++number) {
    read_samples(progress_.sample + (slot * batches + number) * batch);
    loss += model_->add_gradient(
        {.tokens = tokens_,
         .scale = static_cast<float>(1.0 / static_cast<double>(tokens_per_step())),
         .key = {.seed = static_cast<std::uint64_t>(config_.seed),
                 .step = static_cast<std::uint64_t>(progress_.step),
                 .slot = static_cast<std::uint32_t>(slot),
                 .micro_batch = static_cast<std::uint32_t>(number)}},
        gradient_.get());
  }
  return loss;
}

void Trainer::read_samples(std::uint64_t first) {
  const auto context = static_cast<std::size_t>(config_.context);
  const auto batch = static_cast<std::size_t>(config_.micro_batch);
  tokens_.resize(batch * (context + 1));
  for (std::size_t i = 0; i < batch; ++i) {
    data_.read(order_.window(first + i) * context,
               std::span(tokens_).subspan(i * (context + 1), context + 1));
  }
}

Status Trainer::apply(const std::vector<float>& gradient, double norm) {
  const Schedule schedule{.most = config_.learning_rate,
                          .least = config_.least_learning_rate,
                          .warmup_steps = config_.warmup_steps,
                          .steps = config_.steps};
  const Range slice = reducer_.slice();
  optimizer_.update(std::span(weights_).subspan(slice.begin, slice.size()),
                    gradient,
                    clip_scale(norm, config_.clip),
                    learning_rate(schedule, progress_.step),
                    ++progress_.updates);
  ACB_TRY(all_gather(comm_, weights_));
  model_->set_weights(weights_.data());
  return {};
}

}  // namespace acb::train

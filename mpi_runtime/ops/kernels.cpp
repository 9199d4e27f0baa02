// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/ops/kernels.h"

#include "mpi_runtime/ops/philox.h"

#include <array>
#include <bit>
#include <cmath>

// The dynamic linker picks the clone that the processor can run. Sanitizers cannot be called that
// early.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ACB_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ACB_CLONES
#endif
#define ACB_INLINE inline __attribute__((always_inline))

namespace acb::train::kernels {
namespace {

constexpr std::size_t kLanes = 16;
using Lanes = std::array<float, kLanes>;

ACB_INLINE float sum_lanes(Lanes lanes) {
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  return lanes[0];
}

/// The sum of term(i) for i < count; element i always goes to lane i mod kLanes.
template <typename Term>
ACB_INLINE float lane_sum(std::size_t count, Term term) {
  Lanes lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += term(i + lane);
    }
  }
  for (std::size_t lane = 0; i + lane < count; ++lane) {
    lanes[lane] += term(i + lane);
  }
  return sum_lanes(lanes);
}

ACB_INLINE float largest(std::size_t count, const float* values) {
  float found = values[0];
  for (std::size_t i = 1; i < count; ++i) {
    found = found < values[i] ? values[i] : found;
  }
  return found;
}

/// e^x with an error under 2 ulp, from -87 to 88 and held there outside: Cephes expf (Moshier,
/// Methods and Programs for Mathematical Functions, 1989). Infinities are held too, NaN stays.
ACB_INLINE float exponential(float x) {
  constexpr float kLog2e = 1.44269504088896341F;
  constexpr float kRoundToInteger = 12582912.0F;  // 1.5 * 2^23: the fraction falls off
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  const float n = (x * kLog2e + kRoundToInteger) - kRoundToInteger;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const auto bits = static_cast<std::uint32_t>((static_cast<std::int32_t>(n) + 127) << 23);
  return p * std::bit_cast<float>(bits);
}

constexpr float kGeluScale = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;

ACB_INLINE float gelu_tanh(float x) {
  const float u = kGeluScale * (x + kGeluCubic * x * x * x);
  return 1.0F - 2.0F / (exponential(2.0F * u) + 1.0F);
}

}  // namespace

ACB_CLONES void to_bf16(std::size_t count, const float* in, std::uint16_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
    // A NaN must not be carried over into an infinity.
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    out[i] = static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : rounded) >> 16);
  }
}

ACB_CLONES void add(std::size_t count, const float* __restrict from, float* __restrict to) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] += from[i];
  }
}

ACB_CLONES void gelu(std::size_t count, const float* __restrict in, float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = 0.5F * in[i] * (1.0F + gelu_tanh(in[i]));
  }
}

ACB_CLONES void gelu_grad(std::size_t count,
                          const float* in,
                          const float* out_grad,
                          float* in_grad) {
#pragma GCC ivdep  // in_grad is out_grad itself or apart from it
  for (std::size_t i = 0; i < count; ++i) {
    const float x = in[i];
    const float t = gelu_tanh(x);
    const float slope = kGeluScale * (1.0F + 3.0F * kGeluCubic * x * x);
    in_grad[i] = out_grad[i] * (0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * slope);
  }
}

ACB_CLONES void layernorm_row(std::size_t width,
                              const float* in,
                              std::span<const float* const, 2> gain_and_bias,
                              float* __restrict out,
                              std::span<float, 2> mean_and_inverse_deviation) {
  constexpr float kEpsilon = 1e-5F;
  const float* __restrict gain = gain_and_bias[0];
  const float* __restrict bias = gain_and_bias[1];
  const auto size = static_cast<float>(width);
  const float mean = lane_sum(width, [in](std::size_t i) { return in[i]; }) / size;
  const float variance =
      lane_sum(width, [in, mean](std::size_t i) { return (in[i] - mean) * (in[i] - mean); }) / size;
  const float inverse = 1.0F / std::sqrt(variance + kEpsilon);
  for (std::size_t i = 0; i < width; ++i) {
    out[i] = (in[i] - mean) * inverse * gain[i] + bias[i];
  }
  mean_and_inverse_deviation[0] = mean;
  mean_and_inverse_deviation[1] = inverse;
}

ACB_CLONES void layernorm_grad_row(std::size_t width,
                                   const float* in,
                                   const float* gain,
                                   std::span<const float, 2> mean_and_inverse_deviation,
                                   const float* out_grad,
                                   float* __restrict in_grad) {
  const float mean = mean_and_inverse_deviation[0];
  const float inverse = mean_and_inverse_deviation[1];
  const auto size = static_cast<float>(width);
  const float mean_grad =
      lane_sum(width, [=](std::size_t i) { return out_grad[i] * gain[i]; }) / size;
  const float mean_grad_normal =
      lane_sum(width,
               [=](std::size_t i) { return out_grad[i] * gain[i] * ((in[i] - mean) * inverse); }) /
      size;
  for (std::size_t i = 0; i < width; ++i) {
    const float normal = (in[i] - mean) * inverse;
    in_grad[i] += (out_grad[i] * gain[i] - mean_grad - normal * mean_grad_normal) * inverse;
  }
}

ACB_CLONES void layernorm_grad_columns(const Columns& columns,
                                       const float* in,
                                       NormStatistics statistics,
                                       const float* out_grad,
                                       std::span<float* const, 2> gain_and_bias_grad) {
  float* __restrict gain_grad = gain_and_bias_grad[0];
  float* __restrict bias_grad = gain_and_bias_grad[1];
  for (std::size_t row = 0; row < columns.rows; ++row) {
    const float mean = statistics.mean[row];
    const float inverse = statistics.inverse_deviation[row];
    const float* row_in = in + row * columns.width;
    const float* row_grad = out_grad + row * columns.width;
    for (std::size_t i = columns.begin; i < columns.end; ++i) {
      gain_grad[i] += row_grad[i] * ((row_in[i] - mean) * inverse);
      bias_grad[i] += row_grad[i];
    }
  }
}

ACB_CLONES void column_sums(const Columns& columns, const float* in, float* __restrict sums) {
  for (std::size_t row = 0; row < columns.rows; ++row) {
    const float* row_in = in + row * columns.width;
    for (std::size_t i = columns.begin; i < columns.end; ++i) {
      sums[i] += row_in[i];
    }
  }
}

ACB_CLONES void softmax_row(std::size_t seen, std::size_t width, float scale, float* scores) {
  const float most = largest(seen, scores);
  for (std::size_t i = 0; i < seen; ++i) {
    scores[i] = exponential(scale * (scores[i] - most));
  }
  const float inverse = 1.0F / lane_sum(seen, [scores](std::size_t i) { return scores[i]; });
  for (std::size_t i = 0; i < seen; ++i) {
    scores[i] *= inverse;
  }
  for (std::size_t i = seen; i < width; ++i) {
    scores[i] = 0.0F;
  }
}

ACB_CLONES void softmax_grad_row(std::size_t seen,
                                 std::size_t width,
                                 float scale,
                                 const float* __restrict probabilities,
                                 float* __restrict grad) {
  const float mean = lane_sum(seen, [=](std::size_t i) { return probabilities[i] * grad[i]; });
  for (std::size_t i = 0; i < seen; ++i) {
    grad[i] = scale * probabilities[i] * (grad[i] - mean);
  }
  for (std::size_t i = seen; i < width; ++i) {
    grad[i] = 0.0F;
  }
}

ACB_CLONES float cross_entropy_row(std::size_t vocab,
                                   std::size_t target,
                                   float scale,
                                   float* logits) {
  const float most = largest(vocab, logits);
  const float target_logit = logits[target];
  for (std::size_t i = 0; i < vocab; ++i) {
    logits[i] = exponential(logits[i] - most);
  }
  const float sum = lane_sum(vocab, [logits](std::size_t i) { return logits[i]; });
  const float factor = scale / sum;
  for (std::size_t i = 0; i < vocab; ++i) {
    logits[i] *= factor;
  }
  logits[target] -= scale;
  return std::log(sum) + most - target_logit;
}

ACB_CLONES void dropout(
    std::size_t begin, std::size_t count, float rate, const DropoutKey& key, float* values) {
  const PhiloxCounter named{static_cast<std::uint32_t>(key.step),
                            static_cast<std::uint32_t>(key.step >> 32),
                            key.slot,
                            key.micro_batch};
  const PhiloxCounter mixed = philox(named, philox_key(key.seed));
  const PhiloxKey stream{mixed[0], mixed[1]};
  // Of 2^32 equally likely numbers, those below the threshold are dropped.
  const auto threshold = static_cast<std::uint32_t>(static_cast<double>(rate) * 4294967296.0);
  const float kept = 1.0F / (1.0F - rate);
  for (std::size_t i = 0; i < count; i += 4) {
    const std::uint64_t group = (begin + i) / 4;
    const PhiloxCounter random = philox({static_cast<std::uint32_t>(group),
                                         static_cast<std::uint32_t>(group >> 32),
                                         key.layer,
                                         key.site},
                                        stream);
    for (std::size_t j = 0; j < 4 && i + j < count; ++j) {
      values[i + j] = random[j] < threshold ? 0.0F : values[i + j] * kept;
    }
  }
}

ACB_CLONES float sum_of_squares(std::size_t count, const float* values) {
  return lane_sum(count, [values](std::size_t i) { return values[i] * values[i]; });
}

ACB_CLONES void adamw(std::size_t count,
                      const AdamwStep& step,
                      const float* __restrict gradient,
                      std::span<float* const, 3> weight_and_moments) {
  float* __restrict weight = weight_and_moments[0];
  float* __restrict first = weight_and_moments[1];
  float* __restrict second = weight_and_moments[2];
  const float keep = 1.0F - step.rate * step.decay;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i] * step.gradient_scale;
    first[i] = step.beta1 * first[i] + (1.0F - step.beta1) * g;
    second[i] = step.beta2 * second[i] + (1.0F - step.beta2) * g * g;
    const float corrected = first[i] * step.first_correction;
    const float size = std::sqrt(second[i] * step.second_correction) + step.epsilon;
    weight[i] = weight[i] * keep - step.rate * (corrected / size);
  }
}

}  // namespace acb::train::kernels

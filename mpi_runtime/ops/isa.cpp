// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/ops/isa.h"

#include <cpuid.h>
#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <string>

namespace acb::train {
namespace {

struct Level {
  std::string_view name;
  dnnl_cpu_isa_t dnnl;
};
// avx512 without bf16 is oneDNN's "core" set of Skylake servers: VNNI adds only int8 products.
constexpr std::array<Level, 5> kLevels{{{"sse41", dnnl_cpu_isa_sse41},
                                        {"avx2", dnnl_cpu_isa_avx2},
                                        {"avx512", dnnl_cpu_isa_avx512_core},
                                        {"avx512_bf16", dnnl_cpu_isa_avx512_core_bf16},
                                        {"amx", dnnl_cpu_isa_avx512_core_amx}}};

const Level& level(Isa isa) {
  return kLevels.at(static_cast<std::size_t>(isa));
}

bool has_amx() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  // Intel SDM volume 2A, CPUID leaf 7: EDX bits 22 AMX-BF16, 24 AMX-TILE, 25 AMX-INT8.
  constexpr unsigned kBits = 1U << 22 | 1U << 24 | 1U << 25;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kBits) == kBits;
}

}  // namespace

std::string_view name_of(Isa isa) {
  return level(isa).name;
}

Result<Isa> parse_isa(std::string_view name) {
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels.at(i).name == name) {
      return static_cast<Isa>(i);
    }
  }
  return fail(ErrorCode::invalid, "isa: '" + std::string(name) + "': no such instruction set");
}

Isa detect_isa() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return Isa::sse41;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
    return Isa::avx2;
  }
  if (!__builtin_cpu_supports("avx512bf16")) {
    return Isa::avx512;
  }
  return has_amx() ? Isa::amx : Isa::avx512_bf16;
}

Status set_isa(Isa isa) {
  // Asking oneDNN what it uses also freezes it, so the limit comes first; a second limit is an
  // error to oneDNN, which the comparison turns into one only where it matters.
  dnnl_set_max_cpu_isa(level(isa).dnnl);
  if (dnnl_get_effective_cpu_isa() != level(isa).dnnl) {
    return fail(ErrorCode::unavailable,
                "isa: " + std::string(name_of(isa)) +
                    ": oneDNN uses another instruction set in this process");
  }
  return {};
}

}  // namespace acb::train

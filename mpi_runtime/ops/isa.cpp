// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/ops/isa.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <cstring>

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

std::string device_model() {
  std::array<unsigned, 4> leaf{};  // EAX, EBX, ECX, EDX
  std::array<char, 12> vendor{};
  __get_cpuid(0, &leaf[0], &leaf[1], &leaf[2], &leaf[3]);
  std::memcpy(vendor.data(), &leaf[1], 4);
  std::memcpy(vendor.data() + 4, &leaf[3], 4);
  std::memcpy(vendor.data() + 8, &leaf[2], 4);
  __get_cpuid(1, &leaf[0], &leaf[1], &leaf[2], &leaf[3]);
  // Intel SDM volume 2A, CPUID leaf 1: the extended fields count in families 6 and 15.
  const unsigned family = (leaf[0] >> 8 & 0xf) + (leaf[0] >> 20 & 0xff);
  const unsigned model = (leaf[0] >> 4 & 0xf) + (leaf[0] >> 12 & 0xf0);
  const dnnl_version_t* dnnl = dnnl_version();
  return fmt::format("{} family {} model {}, oneDNN {}.{}.{} {:.8}, glibc {}",
                     std::string_view(vendor.data(), vendor.size()),
                     family,
                     model,
                     dnnl->major,
                     dnnl->minor,
                     dnnl->patch,
                     dnnl->hash,
                     gnu_get_libc_version());
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

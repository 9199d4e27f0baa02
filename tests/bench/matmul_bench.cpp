// SPDX-License-Identifier: Apache-2.0
// Our tiled products against a plain oneDNN product with as many threads. Prints the JSON list that
// tests/bench/matmul.sh writes; the best of several rounds counts, ours and theirs in turn.
#include "base/json.h"
#include "mpi_runtime/ops/products.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace {

using acb::train::Products;
using acb::train::ProductShape;
using dnnl::memory;
using Clock = std::chrono::steady_clock;

struct Row {
  const char* name;
  std::int64_t rows, columns, inner;
};

template <typename Body>
double seconds(int repeats, Body body) {
  const auto begun = Clock::now();
  for (int i = 0; i < repeats; ++i) {
    body();
  }
  return std::chrono::duration<double>(Clock::now() - begun).count() / repeats;
}

acb::Json measure(const Row& row, int threads, bool bf16) {
  std::vector<float> a(static_cast<std::size_t>(row.rows * row.inner), 0.5F);
  std::vector<float> b(static_cast<std::size_t>(row.inner * row.columns), 0.25F);
  std::vector<float> c(static_cast<std::size_t>(row.rows * row.columns));
  acb::train::ThreadPool pool(threads, Products::use_one_openmp_thread);
  Products products(pool);
  const ProductShape shape{row.rows,
                           row.columns,
                           row.inner,
                           row.inner,
                           1,
                           row.columns,
                           1,
                           row.columns,
                           bf16,
                           false,
                           false};
  const auto ours = [&] { products.run(shape, {.a = a.data(), .b = b.data(), .c = c.data()}); };

  omp_set_num_threads(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto in = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::desc ad({row.rows, row.inner}, in, memory::format_tag::ab);
  const memory::desc bd({row.inner, row.columns}, in, memory::format_tag::ab);
  const memory::desc cd({row.rows, row.columns}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul plain(dnnl::matmul::primitive_desc(dnnl::matmul::desc(ad, bd, cd), engine));
  const std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, {ad, engine, a.data()}},
                                                  {DNNL_ARG_WEIGHTS, {bd, engine, b.data()}},
                                                  {DNNL_ARG_DST, {cd, engine, c.data()}}};
  const auto theirs = [&] {
    plain.execute(stream, arguments);
    stream.wait();
  };
  const double operations = 2.0 * static_cast<double>(row.rows * row.columns * row.inner);
  const int repeats = std::max(1, static_cast<int>(2e9 / operations));
  double our_best = 1e9;
  double their_best = 1e9;
  for (int round = 0; round < 7; ++round) {
    Products::use_one_openmp_thread();
    our_best = std::min(our_best, seconds(repeats, ours));
    omp_set_num_threads(threads);
    their_best = std::min(their_best, seconds(repeats, theirs));
  }
  return {
      {"name",
       std::string(row.name) + (bf16 ? " bf16 " : " fp32 ") + std::to_string(threads) + " threads"},
      {"value", operations / our_best / 1e9},
      {"unit", "GFLOP/s"},
      {"beside", "plain oneDNN"},
      {"beside_value", operations / their_best / 1e9},
      {"ratio", their_best / our_best}};
}

}  // namespace

int main() {
  acb::Json list = acb::Json::array();
  for (const Row& row : {Row{"quickstart qkv 128x384x128", 128, 384, 128},
                         Row{"quickstart mlp 128x512x128", 128, 512, 128},
                         Row{"gpt2 qkv 512x2304x768", 512, 2304, 768},
                         Row{"gpt2 mlp 512x768x3072", 512, 768, 3072}}) {
    for (const int threads : {1, 2}) {
      for (const bool bf16 : {false, true}) {
        list.push_back(measure(row, threads, bf16));
      }
    }
  }
  std::printf("%s\n", acb::dump_json(list, 2).c_str());
  return 0;
}

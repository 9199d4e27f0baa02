// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/model/layout.h"

#include <gtest/gtest.h>

namespace acb::train {
namespace {

TEST(Layout, HoldsTheTensorsOfGpt2WithTheHeadTiedToTheEmbedding) {
  const auto layout =
      gpt2_layout({.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocab = 50257});
  std::size_t parameters = 0;
  for (const auto& tensor : layout) {
    parameters += tensor.count();
  }
  EXPECT_EQ(parameters, 124439808U);  // GPT-2 small, as published
}

TEST(Layout, TensorsStartAtBlocksAndDoNotOverlap) {
  const auto layout =
      gpt2_layout({.layers = 3, .heads = 3, .width = 99, .context = 7, .vocab = 31});
  std::size_t end = 0;
  for (const auto& tensor : layout) {
    EXPECT_EQ(tensor.offset % kBlock, 0U) << tensor.name;
    EXPECT_GE(tensor.offset, end) << tensor.name;
    EXPECT_LT(tensor.offset - end, kBlock) << tensor.name;
    end = tensor.offset + tensor.count();
  }
  EXPECT_GE(flat_size(layout), end);
  EXPECT_EQ(flat_size(layout) % kBlock, 0U);
}

TEST(Layout, OnlyMatricesDecay) {
  for (const auto& tensor : gpt2_layout({})) {
    const bool vector = tensor.name.find("ln") != std::string::npos ||
                        tensor.name.find(".bias") != std::string::npos;
    EXPECT_EQ(decays(tensor), !vector) << tensor.name;
  }
}

}  // namespace
}  // namespace acb::train

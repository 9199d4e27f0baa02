// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/data/dataset.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

namespace acb::train {
namespace {

class DatasetFile : public testing::Test {
 protected:
  void write(std::string_view bytes) { ASSERT_TRUE(write_file(path_, bytes)); }
  void TearDown() override { std::filesystem::remove(path_); }
  std::filesystem::path path_ = testing::TempDir() + "dataset_test-" +
                                testing::UnitTest::GetInstance()->current_test_info()->name();
};

template <typename T>
std::string bytes_of(const T& value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
std::string tokens(const std::vector<std::uint16_t>& values) {
  std::string bytes;
  for (const auto value : values) {
    bytes += bytes_of(value);
  }
  return bytes;
}
std::string our_header(std::uint32_t vocab, std::uint64_t count) {
  return "ACBTOKEN" + bytes_of(std::uint32_t{1}) + bytes_of(vocab) + bytes_of(count) +
         std::string(40, '\0');
}
std::string llmc_header(std::int32_t version, std::int32_t count) {
  std::array<std::int32_t, 256> header{};
  header[0] = 20240520;
  header[1] = version;
  header[2] = count;
  return bytes_of(header);
}
std::vector<std::int32_t> all(const Dataset& data) {
  std::vector<std::int32_t> found(data.size());
  data.read(0, found);
  return found;
}

TEST_F(DatasetFile, TextIsItsBytes) {
  write("In \xC3\xA4");
  const auto data = Dataset::open(path_);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->vocab(), 256);
  EXPECT_EQ(all(*data), (std::vector<std::int32_t>{'I', 'n', ' ', 0xC3, 0xA4}));
}

TEST_F(DatasetFile, ReadsBothTokenFormats) {
  for (const auto& [header, vocab] :
       {std::pair{our_header(60000, 3), 60000}, std::pair{llmc_header(1, 3), 50257}}) {
    write(header + tokens({1, 50000, 7}));
    const auto data = Dataset::open(path_);
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(data->vocab(), vocab);
    EXPECT_EQ(all(*data), (std::vector<std::int32_t>{1, 50000, 7}));
    std::array<std::int32_t, 1> last{};
    data->read(2, last);
    EXPECT_EQ(last[0], 7);
  }
}

TEST_F(DatasetFile, RefusesADamagedTokenFile) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {our_header(100, 3) + tokens({1, 2}), "says 3 tokens, but the file has 4 bytes"},
      {our_header(100, 2) + tokens({1, 100}), "token 1 is 100: must be below 100"},
      {our_header(0, 0), "must be version 1 and 1 to 65536"},
      {llmc_header(2, 1) + tokens({1}), "llm.c token file of version 2: must be 1"},
      {llmc_header(1, 1) + tokens({60000}), "token 0 is 60000: must be below 50257"}};
  for (const auto& [bytes, message] : rows) {
    write(bytes);
    const auto data = Dataset::open(path_);
    ASSERT_FALSE(data) << message;
    EXPECT_NE(data.error().message.find(message), std::string::npos) << data.error().message;
    EXPECT_EQ(data.error().code, ErrorCode::corrupt);
  }
}

TEST_F(DatasetFile, HashIsOfTheContent) {
  write("one");
  const std::string one = Dataset::open(path_)->hash();
  write("two");
  EXPECT_NE(Dataset::open(path_)->hash(), one);
  write("one");
  EXPECT_EQ(Dataset::open(path_)->hash(), one);
}

TEST_F(DatasetFile, AnEmptyOrMissingFileIsNamed) {
  write("");
  EXPECT_NE(Dataset::open(path_).error().message.find(path_.string()), std::string::npos);
  const auto missing = Dataset::open("/nonexistent/text");
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace acb::train

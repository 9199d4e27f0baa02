// SPDX-License-Identifier: Apache-2.0
// The cloud's client against a simulated cloud over TLS: what is rented, found, listed and given
// back, what faults look like, and that no copy of the key outlives a call.
#include "cloudburst/provider/provider.h"

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace acb::cloud {
namespace {

class Cloud : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_folders(folder_));
    ASSERT_TRUE(write_file(folder_ / "scenario.toml",
                           "seed = 1\n[offers.v]\ngpu_type = \"v100-32gb\"\nprice = \"0.91\"\n"
                           "market = \"spot\"\ncapacity = 3\n"));
    key_ = random_hex(20);
    ASSERT_TRUE(write_file(folder_ / "key", key_ + "\n", 0600));
    const auto made = run_process({{"openssl",
                                    "req",
                                    "-x509",
                                    "-newkey",
                                    "ec",
                                    "-pkeyopt",
                                    "ec_paramgen_curve:P-256",
                                    "-nodes",
                                    "-keyout",
                                    folder_ / "tls.key",
                                    "-out",
                                    folder_ / "tls.pem",
                                    "-subj",
                                    "/CN=cloud",
                                    "-addext",
                                    "subjectAltName=IP:127.0.0.1"}},
                                  std::chrono::seconds(20));
    ASSERT_TRUE(made && made->exit_code == 0);
    start();
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGTERM);
      ::waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  void start() {
    const auto started = spawn({{ACB_CLOUDSIM,
                                 "serve",
                                 "--scenario",
                                 folder_ / "scenario.toml",
                                 "--listen",
                                 "127.0.0.1:0",
                                 "--cert",
                                 folder_ / "tls.pem",
                                 "--key",
                                 folder_ / "tls.key",
                                 "--state",
                                 folder_ / "state",
                                 "--api-key-file",
                                 folder_ / "key"}});
    ASSERT_TRUE(started) << started.error().message;
    pid_ = *started;
    Result<std::string> endpoint = fail(ErrorCode::not_found, "");
    for (int round = 0; round < 500 && !endpoint; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      endpoint = read_file(folder_ / "state" / "endpoint.json");
    }
    ASSERT_TRUE(endpoint);
    options_.url = json_or<std::string>(*parse_json("endpoint", *endpoint), "url", "");
    options_.ca_file = folder_ / "tls.pem";
    options_.call_limit = std::chrono::seconds(10);
  }
  [[nodiscard]] Provider provider() const {
    return std::move(*Provider::open(options_, Secret::from_file(folder_ / "key").value()));
  }
  void fault(std::vector<std::string> rule) const {
    std::vector<std::string> words = {ACB_CLOUDSIM, "fault", "add", "f"};
    words.insert(words.end(), rule.begin(), rule.end());
    words.insert(words.end(), {"--state", folder_ / "state"});
    const auto added = run_process({words}, std::chrono::seconds(10));
    ASSERT_TRUE(added && added->exit_code == 0) << added->output;
  }
  [[nodiscard]] static std::string body() {
    AllocateRequest request;
    request.gpu_type = "v100-32gb";
    request.market = Market::spot;
    request.tags = {{"cluster", "test"}};
    return allocate_body(request).value();
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("acb-provider-" + random_hex(8));
  Provider::Options options_;
  std::string key_;
  pid_t pid_ = -1;
};

TEST_F(Cloud, RentsFindsListsAndGivesBack) {
  const Provider cloud = provider();
  const auto offers = cloud.offers("v100-32gb");
  ASSERT_TRUE(offers) << describe(offers.error());
  ASSERT_EQ(offers->size(), 1U);
  EXPECT_EQ(format_money(offers->front().price_per_hour), "0.91");
  EXPECT_EQ(cloud.find_by_key("k/1").value(), std::nullopt);
  const auto rented = cloud.allocate(body(), "k/1");
  ASSERT_TRUE(rented) << describe(rented.error());
  EXPECT_EQ(cloud.allocate(body(), "k/1")->allocation_id, rented->allocation_id);
  EXPECT_EQ(cloud.find_by_key("k/1").value()->allocation_id, rented->allocation_id);
  EXPECT_EQ(cloud.list("cluster:test", Provider::Pages::all)->size(), 1U);
  EXPECT_EQ(cloud.list("cluster:test", Provider::Pages::first)->size(), 1U);
  EXPECT_TRUE(cloud.list("cluster:other", Provider::Pages::all)->empty());
  EXPECT_TRUE(cloud.release(rented->allocation_id));
  bool over = false;
  for (int round = 0; round < 250 && !over; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    over = cloud.get(rented->allocation_id)->is_over();
  }
  EXPECT_TRUE(over);
  EXPECT_EQ(cloud.release(rented->allocation_id).value(), Provider::Released::confirmed);
  const auto again = cloud.allocate(body(), "k/1");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().cls, ErrorClass::conflict);
  EXPECT_EQ(again.error().allocation_id, rented->allocation_id);
}

TEST_F(Cloud, TellsWhatWentWrong) {
  const Provider cloud = provider();
  EXPECT_EQ(cloud.get("al-none").error().cls, ErrorClass::gone);
  EXPECT_EQ(cloud.allocate("{}", "k/2").error().cls, ErrorClass::bad_request);
  fault({"--kind",
         "error",
         "--status",
         "429",
         "--code",
         "rate_limited",
         "--retry-after-s",
         "7",
         "--count",
         "1"});
  const auto throttled = cloud.offers("");
  ASSERT_FALSE(throttled);
  EXPECT_EQ(throttled.error().cls, ErrorClass::throttled);
  EXPECT_EQ(throttled.error().retry_after, std::chrono::seconds(7));
  EXPECT_FALSE(throttled.error().request_id.empty());
  Provider::Options wrong = options_;
  wrong.ca_file.clear();
  const auto stranger =
      Provider::open(wrong, Secret::from_file(folder_ / "key").value())->offers("");
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, "tls");
  const auto refused =
      Provider::open(options_, Secret::copy_of("key", "wrong").value())->offers("");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cls, ErrorClass::auth);
}

TEST_F(Cloud, ALostReplyIsAmbiguousAndTheKeyFindsWhatWasRented) {
  const Provider cloud = provider();
  fault({"--kind", "lose_reply", "--path", "/v1/gpu/allocate", "--count", "1"});
  const auto lost = cloud.allocate(body(), "k/3");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().cls, ErrorClass::ambiguous);
  const auto found = cloud.find_by_key("k/3");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(cloud.allocate(body(), "k/3")->allocation_id, (*found)->allocation_id);
}

TEST_F(Cloud, WhatIsNotAnsweredIsToldInWordsWithTheKey) {
  struct Row {
    std::vector<std::string> fault;
    const char* code;
    const char* words;
  };
  options_.call_limit = std::chrono::seconds(1);
  const Provider cloud = provider();
  for (const Row& row :
       {Row{{"--kind", "drop"}, "unreachable", "connection dropped"},
        Row{{"--kind", "slow", "--delay-s", "2"}, "timeout", "no answer within 1 s"},
        Row{{"--kind", "garble"}, "garbled", "the answer is not a JSON object"}}) {
    fault(row.fault);
    const auto create = cloud.allocate(body(), "k/5");
    const auto look_up = cloud.find_by_key("k/5");
    for (const auto& error : {create.error(), look_up.error()}) {
      EXPECT_EQ(error.cls, ErrorClass::ambiguous) << row.code;
      EXPECT_EQ(error.code, row.code);
      const std::string told = describe(error);
      EXPECT_NE(told.find(row.words), std::string::npos) << told;
      EXPECT_TRUE(told.find("(idempotency key k/5)") != std::string::npos ||
                  told.find("(request req-") != std::string::npos)
          << told;
    }
  }
}

TEST_F(Cloud, WhatIsRentedKnowsTheRequestThatToldOfIt) {
  const Provider cloud = provider();
  const auto rented = cloud.allocate(body(), "k/6");
  ASSERT_TRUE(rented) << describe(rented.error());
  EXPECT_TRUE(rented->request_id.starts_with("req-")) << rented->request_id;
  const auto found = cloud.find_by_key("k/6");
  ASSERT_TRUE(found && *found);
  EXPECT_TRUE((*found)->request_id.starts_with("req-"));
  EXPECT_NE((*found)->request_id, rented->request_id);
}

// Memory that the search itself passes over: it is marked as one that core files leave out.
class Window {
 public:
  Window()
      : bytes_(static_cast<char*>(
            ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::madvise(bytes_, kSize, MADV_DONTDUMP);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { ::munmap(bytes_, kSize); }
  // Reads at most the window's size; the view lasts until the next call.
  std::string_view read(int memory, std::size_t from, std::size_t to) {
    const ssize_t got =
        ::pread(memory, bytes_, std::min(to - from, kSize), static_cast<off_t>(from));
    return {bytes_, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

 private:
  static constexpr std::size_t kSize = std::size_t{64} << 20;
  char* bytes_;
};

int occurrences(std::string_view bytes, std::string_view key) {
  int count = 0;
  for (std::size_t at = bytes.find(key); at != std::string_view::npos;
       at = bytes.find(key, at + 1)) {
    ++count;
  }
  return count;
}

// Occurrences of `key` in all of this process's memory that a core file would hold.
int copies_in_memory(const std::string& key) {
  Window window;
  std::ifstream maps("/proc/self/smaps");
  const UniqueFd memory(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  std::string line;
  std::size_t from = 0;
  std::size_t to = 0;
  bool readable = false;
  int copies = 0;
  while (std::getline(maps, line)) {
    char mode[8] = "";
    std::size_t first = 0;
    std::size_t last = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx %7s", &first, &last, mode) == 3) {
      from = first;
      to = last;
      readable = mode[0] == 'r' && line.find("[v") == std::string::npos;
    } else if (line.starts_with("VmFlags:") && readable && line.find(" dd") == std::string::npos) {
      for (std::size_t at = from; at < to;) {
        const std::string_view bytes = window.read(memory.get(), at, to);
        EXPECT_FALSE(bytes.empty());
        copies += occurrences(bytes, key);
        at += std::max<std::size_t>(bytes.size(), 4096);
      }
    }
  }
  return copies;
}

TEST_F(Cloud, NoCopyOfTheKeyOutlivesACall) {
  const Provider cloud = provider();
  const std::string pattern = key_;
  const int before = copies_in_memory(pattern);
  ASSERT_GE(before, 1);  // the test's own
  ASSERT_TRUE(cloud.allocate(body(), "k/4"));
  ASSERT_TRUE(cloud.offers(""));
  EXPECT_EQ(copies_in_memory(pattern), before);
}

TEST(LoadCloudKey, TakesTheVariableOutOfTheEnvironment) {
  char* entry = ::strdup("AUTO_CLOUD_API_KEY=abc123");
  ASSERT_EQ(::putenv(entry), 0);
  const auto key = load_cloud_key("");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->reveal(), "abc123");
  EXPECT_EQ(std::getenv("AUTO_CLOUD_API_KEY"), nullptr);
  EXPECT_STREQ(entry, "AUTO_CLOUD_API_KEY=");
  std::free(entry);
}

TEST(LoadCloudKey, RefusesAFileThatOthersCanRead) {
  const auto path = std::filesystem::temp_directory_path() / ("acb-key-" + random_hex(8));
  ASSERT_TRUE(write_file(path, " abc123\n", 0640));
  const auto refused = load_cloud_key(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::denied);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(load_cloud_key(path)->reveal(), "abc123");
  std::filesystem::remove(path);
  EXPECT_EQ(load_cloud_key(path).error().code, ErrorCode::not_found);
  EXPECT_FALSE(load_cloud_key(""));
}

}  // namespace
}  // namespace acb::cloud

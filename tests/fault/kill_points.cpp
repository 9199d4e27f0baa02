// SPDX-License-Identifier: Apache-2.0
// Preloaded into autocloudd: kills it (SIGKILL, all its threads) at the n-th point that it passes,
// n being ACB_KILL_AT; 0 kills never. Points are
//   commit  before and after every commit of the ledger, as SQLite's own hooks tell them
//   call    before every call to the cloud; once its request is sent; and after its answer is read,
//           before any of our code has seen that
//   slurm   before and after every change of a node or a job
// Each point passed is a line in the file ACB_KILL_POINTS; the last line is "killed". Where
// ACB_KILL_FROM names a file, they count only once it exists.
#include <curl/curl.h>
#include <slurm/slurm.h>
#include <sqlite3.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace {

std::mutex mutex;
int passed = 0;
thread_local bool is_calling = false;  // a request to the cloud that is not sent yet

void write_line(std::string_view text) {
  static const int log =
      open(std::getenv("ACB_KILL_POINTS"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const std::string line = std::string(text) + "\n";
  if (write(log, line.data(), line.size()) < 0) {
    std::abort();
  }
}

void pass(std::string_view what) {
  static const int kill_at = std::atoi(std::getenv("ACB_KILL_AT"));
  static const std::string from = std::getenv("ACB_KILL_FROM");
  const std::lock_guard lock(mutex);
  if (!from.empty() && access(from.c_str(), F_OK) != 0) {
    return;
  }
  write_line(what);
  if (++passed == kill_at) {
    write_line("killed");
    kill(getpid(), SIGKILL);
    pause();
  }
}

/// The function in the library.
template <typename Function>
Function* original(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int before_commit(void*) {
  pass("commit before");
  return 0;
}

/// Takes the place of SQLite's own hook, which does nothing but these checkpoints.
int after_commit(void*, sqlite3* database, const char* name, int pages) {
  constexpr int kCheckpoint = 1000;
  pass("commit after");
  return pages >= kCheckpoint ? sqlite3_wal_checkpoint(database, name) : SQLITE_OK;
}

}  // namespace

extern "C" {

int sqlite3_open_v2(const char* file, sqlite3** database, int flags, const char* vfs) {
  static const auto real = original(&sqlite3_open_v2, "sqlite3_open_v2");
  const int code = real(file, database, flags, vfs);
  if (code == SQLITE_OK) {
    sqlite3_commit_hook(*database, before_commit, nullptr);
    sqlite3_wal_hook(*database, after_commit, nullptr);
  }
  return code;
}

CURLcode curl_easy_perform(CURL* handle) {
  static const auto real = original(&curl_easy_perform, "curl_easy_perform");
  pass("call before");
  is_calling = true;
  const CURLcode code = real(handle);
  is_calling = false;
  const char* method = "";
  const char* url = "";
  curl_easy_getinfo(handle, CURLINFO_EFFECTIVE_METHOD, &method);
  curl_easy_getinfo(handle, CURLINFO_EFFECTIVE_URL, &url);
  pass(std::string("call after ") + method + " " + url);
  return code;
}

int SSL_write(SSL* connection, const void* bytes, int size) {
  static const auto real = original(&SSL_write, "SSL_write");
  const int written = real(connection, bytes, size);
  if (std::exchange(is_calling, false)) {
    pass("call sent");
  }
  return written;
}

int slurm_update_node(update_node_msg_t* message) {
  static const auto real = original(&slurm_update_node, "slurm_update_node");
  pass("slurm before");
  const int code = real(message);
  pass(std::string("slurm after update of ") + message->node_names);
  return code;
}

int slurm_update_job2(job_desc_msg_t* message, job_array_resp_msg_t** answers) {
  static const auto real = original(&slurm_update_job2, "slurm_update_job2");
  pass("slurm before");
  const int code = real(message, answers);
  pass("slurm after update of a job");
  return code;
}

int slurm_requeue2(char* job, uint32_t flags, job_array_resp_msg_t** answers) {
  static const auto real = original(&slurm_requeue2, "slurm_requeue2");
  pass("slurm before");
  const int code = real(job, flags, answers);
  pass(std::string("slurm after requeue of ") + job);
  return code;
}

}  // extern "C"

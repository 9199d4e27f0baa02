// SPDX-License-Identifier: Apache-2.0
#include "mpi_runtime/checkpoint/shared_folder.h"

#include "base/files.h"
#include "base/text.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

namespace acb::train {

namespace fs = std::filesystem;

Status check_shared_folder(Communicator& comm,
                           std::string_view what,
                           const fs::path& folder,
                           const std::string& node) {
  const std::string prefix = fmt::format("{}: {} on {}: ", what, folder.string(), node);
  const std::string mark = ".autocloud-seen-" + random_hex(8);
  const auto write = [&]() -> Status {
    ACB_TRY(make_folders(folder));
    return write_file(folder / mark, mark);
  };
  const bool first = comm.rank() == 0;
  Status mine = first ? write() : Status();
  const bool full = !mine && mine.error().code == ErrorCode::exhausted;
  ACB_TRY_ASSIGN(const std::vector<std::string> marks,
                 gather_texts(comm, first && mine ? mark : ""));
  const std::string& wanted = marks.front();
  if (!first && !wanted.empty()) {
    const auto read = read_file(folder / wanted);
    if (!read || *read != wanted) {
      mine = fail(ErrorCode::invalid,
                  prefix + "it is not the folder that rank 0 sees: all nodes must share it");
    } else if (::access(folder.c_str(), W_OK) != 0) {
      mine = fail_errno(prefix + "writing");
    }
  }
  if (full) {
    spdlog::warn("{}{}", prefix, mine.error().message);
    mine = {};
  } else if (first && !mine) {
    mine = fail_with(prefix + "writing", mine.error());
  }
  ACB_TRY_ASSIGN(Status all, agree(comm, mine));
  if (first && !wanted.empty()) {
    ::unlink((folder / wanted).c_str());
  }
  return all;
}

}  // namespace acb::train

// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/stored_job.h"

#include "base/files.h"
#include "spank_plugin/label.h"

#include <string>

namespace acb::spank {

bool is_stored_burst(const std::filesystem::path& state_folder, std::uint32_t job_id) {
  constexpr std::size_t kLargestEnvironment = std::size_t{16} << 20;
  const auto file = state_folder / ("hash." + std::to_string(job_id % 10)) /
                    ("job." + std::to_string(job_id)) / "environment";
  const auto bytes = read_file(file, kLargestEnvironment);
  if (!bytes) {
    return false;
  }
  // Strings, each with its NUL, after counts whose form differs between releases: the variable
  // stands at the start of a string, and so after a NUL or a count's last byte.
  const std::string name = std::string(kJobPrefix) + kLabelBurst + "=";
  for (std::size_t place = bytes->find(name); place != std::string::npos;
       place = bytes->find(name, place + 1)) {
    const unsigned char before =
        place == 0 ? '\0' : static_cast<unsigned char>((*bytes)[place - 1]);
    const bool inside_a_string = before >= ' ' && before < 0x7f;
    if (!inside_a_string) {
      return true;
    }
  }
  return false;
}

}  // namespace acb::spank

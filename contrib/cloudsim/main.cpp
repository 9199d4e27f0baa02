// SPDX-License-Identifier: Apache-2.0
// cloudsim: a cloud that rents GPU nodes, simulated.
#include "cloudsim/commands.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <exception>

int main(int argc, char** argv) {
  try {
    spdlog::set_default_logger(spdlog::stderr_color_mt("cloudsim"));
    return acb::sim::run_command(argc, argv);
  } catch (const std::exception& error) {
    spdlog::error("cloudsim: {}", error.what());
    return 1;
  }
}

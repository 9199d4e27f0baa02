// SPDX-License-Identifier: Apache-2.0
// The one place that includes Slurm's headers. spank.h declares the callbacks outside its own
// extern "C" block, so that C++ has to put one around the include.
#pragma once

#include <stdint.h>

extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
}

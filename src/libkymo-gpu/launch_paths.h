/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Call paths of launches: libkymo, which is preloaded into the process, walks the stack of the
 * thread that launches; the path's number becomes the external correlation id of the
 * launch.
 */
#ifndef KYMO_LIBKYMO_GPU_LAUNCH_PATHS_H
#define KYMO_LIBKYMO_GPU_LAUNCH_PATHS_H

#include <stdint.h>

#include <rocprofiler-sdk/rocprofiler.h>

void launch_paths_configure_unless_disabled(rocprofiler_context_id_t context);

/* As records have it: enum gpu_launch_path. */
static inline uint32_t launch_paths_of_external_id(uint64_t external_id)
{
	return (uint32_t)external_id;
}

#endif

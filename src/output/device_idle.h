/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Idle time of devices by the line of code that launched the next work (device_lines.h).
 */
#ifndef KYMO_OUTPUT_DEVICE_IDLE_H
#define KYMO_OUTPUT_DEVICE_IDLE_H

#include "analysis/gpu/gpu.h"

struct device_idle_line {
	uint32_t frame; /* MODEL_ENTRY_INDEX_NONE: the launch has no call path */
	uint64_t gaps, ns, before_launch_ns, longest_ns;
};

/* By time, the most first; *ret is malloc'ed. 0 or -ENOMEM. */
int device_idle_build_lines(const struct session *session, const struct gpu_data *data,
			    struct device_idle_line **ret, size_t *ret_count);

#endif

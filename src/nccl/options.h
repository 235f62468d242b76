/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The plugin's settings, from the environment. Values that do not parse are reported, once, in one
 * line each, and count as not set: NCCL goes on.
 */
#ifndef KYMO_NCCL_OPTIONS_H
#define KYMO_NCCL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The latest version of NCCL's interface that there is an adapter of. */
#define NCCL_API_LATEST_VERSION 7

struct plugin_options {
	bool is_enabled;
	bool has_events_option;
	uint32_t event_mask;     /* bits of all versions */
	uint64_t stall_limit_ns; /* 0: off */
	const char *prometheus_path;
	uint64_t prometheus_period_ns;
	uint64_t file_limit_bytes;
	bool is_file_limit_adjusted; /* another one was asked for */
	bool ring;
	const char *call_trace_path;
	bool stops_kernel_channels_at_capture; /* no kernel channels from the first captured call on
						*/
	uint64_t gpu_clock_hz;                 /* of GPU clocks that count ticks */
	const char *spool;                     /* of the session; empty: none */
};

extern struct plugin_options options;

void options_read_environment(void);
/* The events to ask NCCL for through a version of the API. */
uint32_t options_get_event_mask(unsigned api);

#endif

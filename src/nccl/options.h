/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The plugin's settings, from the environment. Values that do not parse are told, once, in one line
 * each, and count as not set: NCCL goes on.
 */
#ifndef KYMO_NCCL_OPTIONS_H
#define KYMO_NCCL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
	bool enabled;
	bool events_given;
	uint32_t events;   /* bits of all versions */
	uint64_t stall_ns; /* 0: off */
	const char *prometheus;
	uint64_t prometheus_period_ns;
	uint64_t size;
	bool size_moved; /* another one was asked for */
	bool ring;
	const char *call_trace;
	bool graphs_fast;      /* no kernel channels from the first captured call on */
	uint64_t gpu_clock_hz; /* of GPU clocks that count ticks */
	const char *spool;     /* of the session; empty: none */
};

extern struct options options;

void options_read(void);
/* The events to ask NCCL for through a version of the API. */
uint32_t options_mask(unsigned api);

#endif

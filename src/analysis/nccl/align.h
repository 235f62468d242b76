/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The clocks of several hosts, brought together by what the ranks of a communicator did.
 *
 * No rank leaves a collective that depends on everybody before the last one has entered it. So
 * with A's earliest sign of having entered and B's latest sign of not having left, each on its
 * own clock, the difference of the two clocks is bounded from one side, and with A and B changed
 * over from the other. What is left between the bounds is the error, and it is proven, not
 * estimated. Clocks drift: bounds are kept by windows of time.
 *
 * Where hosts share no collective there is CLOCK_REALTIME, as good as the hosts' NTP or PTP is.
 */
#ifndef KYMO_ANALYSIS_NCCL_ALIGN_H
#define KYMO_ANALYSIS_NCCL_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/id_map.h"

#define NCCL_ALIGN_WINDOWS_MAX 256 /* at most */

enum nccl_clock_alignment_basis {
	NCCL_ALIGN_SAME_CLOCK,     /* the same clock */
	NCCL_ALIGN_BY_COLLECTIVES, /* bounded; the error is proven */
	NCCL_ALIGN_BY_REALTIME,    /* CLOCK_REALTIME; the error is unknown */
};

/* What to add to a host's time to get that of host 0. */
struct nccl_host_clock_offset {
	int64_t offset_to_host0_ns;
	uint64_t error_ns; /* UINT64_MAX: unknown */
	enum nccl_clock_alignment_basis alignment_basis;
	bool is_contradicted; /* bounds crossed: the clock was set, or its drift is larger than told
			       */
};

struct nccl_host_pair_clock_bounds;

struct nccl_host_clock_alignment {
	uint32_t host_count, window_count;
	uint64_t start_ns, window_ns;
	int64_t *realtime_minus_boottime_ns;                  /* by host */
	struct nccl_host_pair_clock_bounds *host_pair_bounds; /* pairs of hosts in a window */
	size_t host_pair_bounds_count, host_pair_bounds_capacity;
	struct id_map host_pair_bounds_index_by_key;
	struct nccl_host_clock_offset *offsets; /* window_count rows of host_count, after solve */
	uint64_t constraint_count;
};

/* Times of all hosts lie in [start, end] of CLOCK_REALTIME. 0 or -ENOMEM. */
int nccl_host_clock_alignment_init(struct nccl_host_clock_alignment *align, uint32_t host_count,
				   const int64_t *realtime_minus_boottime_ns,
				   uint64_t start_realtime_ns, uint64_t end_realtime_ns);
void nccl_host_clock_alignment_deinit(struct nccl_host_clock_alignment *align);
/* One collective as two hosts saw it, each by its own CLOCK_BOOTTIME: when the last of the
 * host's ranks had certainly not entered yet at the latest, and when the first one had certainly
 * left. 0 or -ENOMEM. */
struct nccl_host_collective_observation {
	uint32_t host;
	int64_t last_enter_ns, first_leave_ns;
};
int nccl_align_add_observations(struct nccl_host_clock_alignment *align,
				const struct nccl_host_collective_observation *first,
				const struct nccl_host_collective_observation *second);
/* After the last bound and before the first question. 0 or -ENOMEM. */
int nccl_align_solve_offsets(struct nccl_host_clock_alignment *align);
/* At a time of the host's own CLOCK_BOOTTIME. */
struct nccl_host_clock_offset
nccl_align_get_offset_at_time(const struct nccl_host_clock_alignment *align, uint32_t host,
			      uint64_t time_ns);
const char *nccl_get_clock_alignment_basis_name(enum nccl_clock_alignment_basis basis);

#endif

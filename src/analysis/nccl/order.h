/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Whose stamps are these? The device writes the times of a channel's work into a ring of 64
 * (MAX_PROFILER_EVENTS_PER_CHANNEL of NCCL 2.26 to 2.31), and NCCL's proxy thread reads place
 * (item mod 64) once the device's count has passed the item, whatever the place holds by then. So
 * a thread that is more than 64 items behind reads the times of item i + 64, i + 128, ...: always
 * *later* than the true ones, and nothing in the record says so. (The other way round, counts that
 * are out of step after replays of graphs give times of *earlier* work.)
 *
 * Here the operations of one communicator of one rank are looked at together, in the order of
 * their ordinals, and those are found whose times are *proven* their own. An operation has one
 * item a channel at most, so that an item that took its place is of an operation at least 64
 * later. Kernels of different launches of a communicator run one after the other.
 *
 *   early    its kernel would have begun before it was launched, with the difference of the
 *            clocks that puts it latest: times of earlier work, and no evidence against others
 *   fresh    the operation 64 later did not exist, or was launched after the times were read,
 *            or after they say that it ended: nothing had taken the place
 *   early    too, if it begins before the end of a fresh one of an earlier launch
 *   late     it ends behind the begin of one of a later launch, which is not early
 *   followed it ends before the begin of one that is proven and no more than 64 later: times of
 *            one that took its place would end later
 *   in step  the times of 256 in a row were read within 20 us: a thread that is 64 behind all the
 *            time finds the next one ready, and cannot keep the pace of the device that exactly
 *   soon     the one before is proven, and its end is not so long ago that 63 others could have
 *            run, each as short as the shortest
 */
#ifndef KYMO_ANALYSIS_NCCL_ORDER_H
#define KYMO_ANALYSIS_NCCL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_DEVICE_RING_LENGTH 64

enum nccl_stamp_flag {
	NCCL_STAMP_HAS_GPU_TIMES = 1u << 0, /* it has GPU times */
	NCCL_STAMP_LAUNCH_KNOWN = 1u << 1,  /* its launch is known, so its place among the others */
	NCCL_STAMP_BATCHED = 1u << 2,       /* of one batch of the device with others */
	NCCL_STAMP_PROVEN = 1u << 3,        /* the answer */
	/* Inside: */
	NCCL_STAMP_EARLY = 1u << 4,
	NCCL_STAMP_LATE = 1u << 5,
	NCCL_STAMP_SAME_LAUNCH = 1u << 6 /* as the one before */
};

/* An operation. Numbers come from files, so any value is possible. */
struct nccl_operation_stamps {
	uint64_t ordinal;
	uint64_t host_launched_ns;          /* host: its kernel did not begin before. Spoilt. */
	uint64_t host_read_ns;              /* host: its times were read before; 0: not known */
	uint64_t gpu_start_ns, gpu_stop_ns; /* GPU */
	int64_t host_minus_gpu_max_ns;      /* inside: host minus GPU, at the most */
	uint32_t place;                     /* for the caller */
	uint32_t flags;                     /* nccl_stamp_flag */
};

/* Sets NCCL_STAMP_PROVEN. Puts `stamps` in order of their ordinals; `started`: so many operations
 * of the communicator were ever started. */
void nccl_mark_proven_stamps(struct nccl_operation_stamps *stamps, size_t count, uint64_t started);

#endif

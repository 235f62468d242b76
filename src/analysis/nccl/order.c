/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which stamps are an operation's own; see order.h. All passes take constant memory and time
 * in proportion to the number of operations.
 */
#include "analysis/nccl/order.h"

#include <stdlib.h>
#include <string.h>

#define STAMP_TIME_MAX_NS          (INT64_MAX / 4) /* more is no time, and sums do not overflow below */
#define CLOCK_SLACK_NS             2000            /* between the host's clocks at two moments */
#define READ_SLACK_NS              20000 /* from a stamp to who reads it, at the quickest: less */
#define QUICK_READS_IN_A_ROW_LEAST 256   /* in a row that were read READ_SLACK_NS behind, or less */
#define CLOCK_DRIFT_DIVISOR        50000 /* clocks part by less than 1 ns in so many */
#define PROOF_ROUNDS_MAX           8 /* each of the passes proves nearly all that it can the first time */

struct ordered_stamps {
	struct nccl_operation_stamps *stamps;
	size_t count;
	uint64_t started_operation_count;
	int64_t shortest_begin_interval_ns; /* from one begin to the next, at the least; 0: not
					       known */
};

static bool stamp_has_flags(const struct nccl_operation_stamps *stamp, uint32_t flags)
{
	return (stamp->flags & flags) == flags;
}

static bool stamp_is_wrong(const struct nccl_operation_stamps *stamp)
{
	return stamp->flags & (NCCL_STAMP_EARLY | NCCL_STAMP_LATE);
}

/* ---- before ---- */

static int compare_stamps_by_ordinal(const void *left, const void *right)
{
	const struct nccl_operation_stamps *a = left, *b = right;

	if (a->ordinal != b->ordinal)
		return a->ordinal < b->ordinal ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static void sort_stamps_by_ordinal(const struct ordered_stamps *order)
{
	for (size_t i = 1; i < order->count; i++) {
		if (compare_stamps_by_ordinal(&order->stamps[i - 1], &order->stamps[i]) > 0) {
			qsort(order->stamps, order->count, sizeof(*order->stamps),
			      compare_stamps_by_ordinal);
			return;
		}
	}
}

/* What cannot be a time is nobody's. */
static void clear_impossible_times(struct nccl_operation_stamps *stamp)
{
	stamp->flags &= NCCL_STAMP_HAS_GPU_TIMES | NCCL_STAMP_LAUNCH_KNOWN | NCCL_STAMP_BATCHED;
	stamp->host_minus_gpu_max_ns = 0;
	if (stamp->host_launched_ns > STAMP_TIME_MAX_NS)
		stamp->host_launched_ns = 0;
	if (stamp->host_read_ns > STAMP_TIME_MAX_NS)
		stamp->host_read_ns = 0;
	if (stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES) &&
	    (!stamp->gpu_start_ns || stamp->gpu_start_ns > stamp->gpu_stop_ns ||
	     stamp->gpu_stop_ns > STAMP_TIME_MAX_NS))
		stamp->flags |= NCCL_STAMP_EARLY;
}

static void sort_and_clean_stamps(struct ordered_stamps *order)
{
	const struct nccl_operation_stamps *before = NULL;

	sort_stamps_by_ordinal(order);
	for (size_t i = 0; i < order->count; i++) {
		struct nccl_operation_stamps *stamp = &order->stamps[i];

		clear_impossible_times(stamp);
		if (!stamp_has_flags(stamp, NCCL_STAMP_LAUNCH_KNOWN))
			continue;
		if (before && before->host_launched_ns == stamp->host_launched_ns)
			stamp->flags |= NCCL_STAMP_SAME_LAUNCH;
		before = stamp;
	}
}

/* Host minus GPU is no more than the time when something was read less what was read. So much is
 * it at the most by what was read around, if the clocks part as quickly as they can. */
static void set_gpu_clock_offset_upper_bounds(const struct ordered_stamps *order, bool forward)
{
	int64_t least = INT64_MAX;
	uint64_t then = 0;

	for (size_t i = 0; i < order->count; i++) {
		struct nccl_operation_stamps *stamp =
			&order->stamps[forward ? i : order->count - 1 - i];

		if (!stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES) || !stamp->host_read_ns ||
		    stamp_is_wrong(stamp))
			continue;
		if (least != INT64_MAX)
			least += llabs((int64_t)(stamp->host_read_ns - then)) / CLOCK_DRIFT_DIVISOR;
		if (forward)
			stamp->host_minus_gpu_max_ns =
				(int64_t)(stamp->host_read_ns - stamp->gpu_stop_ns);
		if (stamp->host_minus_gpu_max_ns < least)
			least = stamp->host_minus_gpu_max_ns;
		stamp->host_minus_gpu_max_ns = least;
		then = stamp->host_read_ns;
	}
}

static bool stamp_bounds_clock_offset(const struct nccl_operation_stamps *stamp)
{
	return stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES) && stamp->host_read_ns &&
	       !stamp_is_wrong(stamp);
}

/* ---- what is early, what is fresh, what is late ---- */

static void mark_stamps_begun_before_launch(const struct ordered_stamps *order)
{
	for (size_t i = 0; i < order->count; i++) {
		struct nccl_operation_stamps *stamp = &order->stamps[i];

		if (stamp_bounds_clock_offset(stamp) &&
		    (int64_t)stamp->gpu_start_ns + stamp->host_minus_gpu_max_ns + CLOCK_SLACK_NS <
			    (int64_t)stamp->host_launched_ns)
			stamp->flags |= NCCL_STAMP_EARLY;
	}
}

static bool stamp_was_read_before_overwritten(const struct ordered_stamps *order,
					      const struct nccl_operation_stamps *stamp,
					      const struct nccl_operation_stamps *later)
{
	if (order->started_operation_count <= NCCL_DEVICE_RING_LENGTH ||
	    stamp->ordinal >= order->started_operation_count - NCCL_DEVICE_RING_LENGTH)
		return true;
	if (later == stamp)
		return false;
	if (stamp->host_read_ns && later->host_launched_ns > stamp->host_read_ns)
		return true;
	return stamp_bounds_clock_offset(stamp) &&
	       (int64_t)later->host_launched_ns >
		       (int64_t)stamp->gpu_stop_ns + stamp->host_minus_gpu_max_ns + CLOCK_SLACK_NS;
}

/* Where the operation 64 later has no record, the last one before it was launched no later. */
static void prove_stamps_read_before_overwritten(const struct ordered_stamps *order)
{
	size_t later = 0;

	for (size_t i = 0; i < order->count; i++) {
		struct nccl_operation_stamps *stamp = &order->stamps[i];

		later = later < i ? i : later;
		while (later + 1 < order->count &&
		       order->stamps[later + 1].ordinal - stamp->ordinal <= NCCL_DEVICE_RING_LENGTH)
			later++;
		if (stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES) && !stamp_is_wrong(stamp) &&
		    stamp_was_read_before_overwritten(order, stamp, &order->stamps[later]))
			stamp->flags |= NCCL_STAMP_PROVEN;
	}
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* By the launches before, [1] of batches, which may overlap others: NCCL tells of launches by
 * thread, and of a batch by its times. */
static void mark_stamps_begun_before_proven_end(const struct ordered_stamps *order)
{
	uint64_t done[2] = {0, 0}, launch[2] = {0, 0};

	for (size_t i = 0; i < order->count; i++) {
		struct nccl_operation_stamps *stamp = &order->stamps[i];
		unsigned batched = stamp_has_flags(stamp, NCCL_STAMP_BATCHED);

		if (!stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES | NCCL_STAMP_LAUNCH_KNOWN) ||
		    stamp_is_wrong(stamp))
			continue;
		if (!stamp_has_flags(stamp, NCCL_STAMP_SAME_LAUNCH)) {
			for (unsigned k = 0; k < 2; k++)
				done[k] = max_u64(done[k], launch[k]);
			launch[0] = launch[1] = 0;
		}
		if (stamp->gpu_start_ns < (batched ? done[0] : max_u64(done[0], done[1]))) {
			stamp->flags &= ~(uint32_t)NCCL_STAMP_PROVEN;
			stamp->flags |= NCCL_STAMP_EARLY;
		} else if (stamp_has_flags(stamp, NCCL_STAMP_PROVEN)) {
			launch[batched] = max_u64(launch[batched], stamp->gpu_stop_ns);
		}
	}
}

static void mark_stamps_ended_after_later_begin(const struct ordered_stamps *order)
{
	uint64_t next[2] = {UINT64_MAX, UINT64_MAX}, launch[2] = {UINT64_MAX, UINT64_MAX};

	for (size_t i = order->count; i-- > 0;) {
		struct nccl_operation_stamps *stamp = &order->stamps[i];
		unsigned batched = stamp_has_flags(stamp, NCCL_STAMP_BATCHED);

		if (!stamp_has_flags(stamp, NCCL_STAMP_LAUNCH_KNOWN))
			continue;
		if (stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES) && !stamp_is_wrong(stamp)) {
			launch[batched] = min_u64(launch[batched], stamp->gpu_start_ns);
			if (!stamp_has_flags(stamp, NCCL_STAMP_PROVEN) &&
			    stamp->gpu_stop_ns > (batched ? next[0] : min_u64(next[0], next[1])))
				stamp->flags |= NCCL_STAMP_LATE;
		}
		if (!stamp_has_flags(stamp, NCCL_STAMP_SAME_LAUNCH)) {
			for (unsigned k = 0; k < 2; k++)
				next[k] = min_u64(next[k], launch[k]);
			launch[0] = launch[1] = UINT64_MAX;
		}
	}
}

/* ---- what follows ---- */

/* launched_ns becomes the begin of the first that its launch holds, by the GPU. */
static void set_launch_begin_times(const struct ordered_stamps *order)
{
	uint64_t begin = UINT64_MAX;

	for (size_t i = order->count; i-- > 0;) {
		struct nccl_operation_stamps *stamp = &order->stamps[i];

		if (stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES) && !stamp_is_wrong(stamp))
			begin = min_u64(begin, stamp->gpu_start_ns);
		stamp->host_launched_ns = begin;
		if (!stamp_has_flags(stamp, NCCL_STAMP_SAME_LAUNCH))
			begin = UINT64_MAX;
	}
	for (size_t i = 1; i < order->count; i++) {
		if (stamp_has_flags(&order->stamps[i], NCCL_STAMP_SAME_LAUNCH))
			order->stamps[i].host_launched_ns = order->stamps[i - 1].host_launched_ns;
	}
}

/* Wrong times are times of others, so one that follows another one begins no sooner. */
static void find_shortest_begin_interval(struct ordered_stamps *order)
{
	int64_t shortest = INT64_MAX, many = 1, most = 1;

	for (size_t i = 1; i < order->count; i++) {
		const struct nccl_operation_stamps *stamp = &order->stamps[i], *before = stamp - 1;
		int64_t apart = (int64_t)(stamp->gpu_start_ns - before->gpu_start_ns);

		many = stamp_has_flags(stamp, NCCL_STAMP_SAME_LAUNCH) ? many + 1 : 1;
		most = many > most ? many : most;
		if (many == 1 && stamp->ordinal == before->ordinal + 1 &&
		    stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES) &&
		    stamp_has_flags(before, NCCL_STAMP_HAS_GPU_TIMES) && !stamp_is_wrong(stamp) &&
		    !stamp_is_wrong(before) && apart > 0 && apart < shortest)
			shortest = apart;
	}
	order->shortest_begin_interval_ns = shortest == INT64_MAX ? 0 : shortest / most;
}

static bool stamp_can_still_be_proven(const struct nccl_operation_stamps *stamp)
{
	return stamp_has_flags(stamp, NCCL_STAMP_HAS_GPU_TIMES) && !stamp_is_wrong(stamp) &&
	       !stamp_has_flags(stamp, NCCL_STAMP_PROVEN);
}

/* The first of so many: the last ones may have been read after a pause, and quickly by chance. */
static void prove_stamps_read_quickly(const struct ordered_stamps *order)
{
	unsigned steps = 0;

	for (size_t i = 0; i < order->count; i++) {
		const struct nccl_operation_stamps *stamp = &order->stamps[i];
		int64_t behind = (int64_t)(stamp->host_read_ns - stamp->gpu_stop_ns) -
				 stamp->host_minus_gpu_max_ns;

		if (!stamp_bounds_clock_offset(stamp) || behind > READ_SLACK_NS ||
		    (i && stamp->ordinal != stamp[-1].ordinal + 1))
			steps = 0;
		else if (++steps >= QUICK_READS_IN_A_ROW_LEAST)
			order->stamps[i + 1 - QUICK_READS_IN_A_ROW_LEAST].flags |=
				NCCL_STAMP_PROVEN;
	}
}

/* The proven ones of the next 64 ordinals: when they, or others of their launch, began. */
struct proven_stamps_ahead_state {
	uint64_t begin_ns_by_ring_slot[NCCL_DEVICE_RING_LENGTH];
	uint64_t proven_ordinal_bits; /* bit n: ordinal + 1 + n is one */
};

static void add_stamp_to_proven_ahead(struct proven_stamps_ahead_state *ahead,
				      const struct nccl_operation_stamps *stamp, uint64_t below)
{
	uint64_t by = stamp->ordinal - below;

	ahead->begin_ns_by_ring_slot[stamp->ordinal % NCCL_DEVICE_RING_LENGTH] =
		stamp->host_launched_ns;
	ahead->proven_ordinal_bits =
		by && by < NCCL_DEVICE_RING_LENGTH ? ahead->proven_ordinal_bits << by : 0;
	if (stamp_has_flags(stamp, NCCL_STAMP_PROVEN) && by && by <= NCCL_DEVICE_RING_LENGTH)
		ahead->proven_ordinal_bits |= UINT64_C(1) << (by - 1);
}

static bool stamp_ends_before_proven_begin(const struct proven_stamps_ahead_state *ahead,
					   const struct nccl_operation_stamps *stamp)
{
	uint64_t furthest;

	if (!ahead->proven_ordinal_bits)
		return false;
	furthest = stamp->ordinal + NCCL_DEVICE_RING_LENGTH -
		   (unsigned)__builtin_clzll(ahead->proven_ordinal_bits);
	return stamp->gpu_stop_ns <=
	       ahead->begin_ns_by_ring_slot[furthest % NCCL_DEVICE_RING_LENGTH];
}

static bool prove_stamps_before_proven_ones(const struct ordered_stamps *order)
{
	struct proven_stamps_ahead_state ahead = {.proven_ordinal_bits = 0};
	bool any = false;

	for (size_t i = order->count; i-- > 0;) {
		struct nccl_operation_stamps *stamp = &order->stamps[i];

		if (i + 1 < order->count)
			add_stamp_to_proven_ahead(&ahead, stamp + 1, stamp->ordinal);
		if (!stamp_can_still_be_proven(stamp) ||
		    !stamp_ends_before_proven_begin(&ahead, stamp))
			continue;
		stamp->flags |= NCCL_STAMP_PROVEN;
		any = true;
	}
	return any;
}

static bool prove_stamps_soon_after_proven(const struct ordered_stamps *order)
{
	int64_t others = (NCCL_DEVICE_RING_LENGTH - 1) *
			 (order->shortest_begin_interval_ns < STAMP_TIME_MAX_NS / 64
				  ? order->shortest_begin_interval_ns
				  : STAMP_TIME_MAX_NS / 64);
	bool any = false;

	for (size_t i = 1; i < order->count; i++) {
		struct nccl_operation_stamps *stamp = &order->stamps[i];
		const struct nccl_operation_stamps *before = stamp - 1;

		if (!stamp_can_still_be_proven(stamp) || !stamp_bounds_clock_offset(stamp) ||
		    !stamp_has_flags(before, NCCL_STAMP_PROVEN | NCCL_STAMP_LAUNCH_KNOWN) ||
		    !stamp_has_flags(stamp, NCCL_STAMP_LAUNCH_KNOWN) ||
		    stamp->ordinal != before->ordinal + 1)
			continue;
		if ((int64_t)(stamp->host_read_ns - before->gpu_stop_ns) -
			    stamp->host_minus_gpu_max_ns + READ_SLACK_NS <
		    others) {
			stamp->flags |= NCCL_STAMP_PROVEN;
			any = true;
		}
	}
	return any;
}

void nccl_mark_proven_stamps(struct nccl_operation_stamps *stamps, size_t count, uint64_t started)
{
	struct ordered_stamps order = {stamps, count, started, 0};

	sort_and_clean_stamps(&order);
	if (count && stamps[count - 1].ordinal >= started)
		order.started_operation_count =
			stamps[count - 1].ordinal | 1; /* that one, at the least */
	set_gpu_clock_offset_upper_bounds(&order, true);
	set_gpu_clock_offset_upper_bounds(&order, false);
	mark_stamps_begun_before_launch(&order);
	prove_stamps_read_before_overwritten(&order);
	mark_stamps_begun_before_proven_end(&order);
	mark_stamps_ended_after_later_begin(&order);
	set_launch_begin_times(&order);
	find_shortest_begin_interval(&order);
	prove_stamps_read_quickly(&order);
	for (unsigned round = 0; round < PROOF_ROUNDS_MAX; round++) {
		bool any = prove_stamps_before_proven_ones(&order);

		if (!prove_stamps_soon_after_proven(&order) && !any)
			break;
	}
}

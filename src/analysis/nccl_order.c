/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which stamps are an operation's own; see nccl_order.h. All passes take constant memory and time
 * in proportion to the number of operations.
 */
#include "analysis/nccl_order.h"

#include <stdlib.h>
#include <string.h>

#define TIME_MAX       (INT64_MAX / 4) /* more is no time, and sums do not overflow below */
#define CLOCK_SLACK_NS 2000            /* between the host's clocks at two moments */
#define READ_SLACK_NS  20000           /* from a stamp to who reads it, at the quickest: less */
#define STEPS          256             /* in a row that were read READ_SLACK_NS behind, or less */
#define DRIFT_PER      50000           /* clocks part by less than 1 ns in so many */
#define ROUNDS         8 /* each of the passes proves nearly all that it can the first time */

struct order {
	struct nccl_stamp *stamps;
	size_t count;
	uint64_t started;
	int64_t shortest_ns; /* from one begin to the next, at the least; 0: not known */
};

static bool has(const struct nccl_stamp *stamp, uint32_t flags)
{
	return (stamp->flags & flags) == flags;
}

static bool is_wrong(const struct nccl_stamp *stamp)
{
	return stamp->flags & (NCCL_STAMP_EARLY | NCCL_STAMP_LATE);
}

/* ---- before ---- */

static int by_ordinal(const void *left, const void *right)
{
	const struct nccl_stamp *a = left, *b = right;

	if (a->ordinal != b->ordinal)
		return a->ordinal < b->ordinal ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static void sort(const struct order *order)
{
	for (size_t i = 1; i < order->count; i++) {
		if (by_ordinal(&order->stamps[i - 1], &order->stamps[i]) > 0) {
			qsort(order->stamps, order->count, sizeof(*order->stamps), by_ordinal);
			return;
		}
	}
}

/* What cannot be a time is nobody's. */
static void clean(struct nccl_stamp *stamp)
{
	stamp->flags &= NCCL_STAMP_TIMED | NCCL_STAMP_ORDERED | NCCL_STAMP_BATCHED;
	stamp->offset_ns = 0;
	if (stamp->launched_ns > TIME_MAX)
		stamp->launched_ns = 0;
	if (stamp->read_ns > TIME_MAX)
		stamp->read_ns = 0;
	if (has(stamp, NCCL_STAMP_TIMED) &&
	    (!stamp->start_ns || stamp->start_ns > stamp->stop_ns || stamp->stop_ns > TIME_MAX))
		stamp->flags |= NCCL_STAMP_EARLY;
}

static void prepare(struct order *order)
{
	const struct nccl_stamp *before = NULL;

	sort(order);
	for (size_t i = 0; i < order->count; i++) {
		struct nccl_stamp *stamp = &order->stamps[i];

		clean(stamp);
		if (!has(stamp, NCCL_STAMP_ORDERED))
			continue;
		if (before && before->launched_ns == stamp->launched_ns)
			stamp->flags |= NCCL_STAMP_SAME_LAUNCH;
		before = stamp;
	}
}

/* Host minus GPU is no more than the time when something was read less what was read. So much is
 * it at the most by what was read around, if the clocks part as quickly as they can. */
static void bound_offsets(const struct order *order, bool forward)
{
	int64_t least = INT64_MAX;
	uint64_t then = 0;

	for (size_t i = 0; i < order->count; i++) {
		struct nccl_stamp *stamp = &order->stamps[forward ? i : order->count - 1 - i];

		if (!has(stamp, NCCL_STAMP_TIMED) || !stamp->read_ns || is_wrong(stamp))
			continue;
		if (least != INT64_MAX)
			least += llabs((int64_t)(stamp->read_ns - then)) / DRIFT_PER;
		if (forward)
			stamp->offset_ns = (int64_t)(stamp->read_ns - stamp->stop_ns);
		if (stamp->offset_ns < least)
			least = stamp->offset_ns;
		stamp->offset_ns = least;
		then = stamp->read_ns;
	}
}

static bool has_offset(const struct nccl_stamp *stamp)
{
	return has(stamp, NCCL_STAMP_TIMED) && stamp->read_ns && !is_wrong(stamp);
}

/* ---- what is early, what is fresh, what is late ---- */

static void find_early(const struct order *order)
{
	for (size_t i = 0; i < order->count; i++) {
		struct nccl_stamp *stamp = &order->stamps[i];

		if (has_offset(stamp) &&
		    (int64_t)stamp->start_ns + stamp->offset_ns + CLOCK_SLACK_NS <
			    (int64_t)stamp->launched_ns)
			stamp->flags |= NCCL_STAMP_EARLY;
	}
}

static bool is_fresh(const struct order *order, const struct nccl_stamp *stamp,
		     const struct nccl_stamp *later)
{
	if (order->started <= NCCL_RING_PLACES ||
	    stamp->ordinal >= order->started - NCCL_RING_PLACES)
		return true;
	if (later == stamp)
		return false;
	if (stamp->read_ns && later->launched_ns > stamp->read_ns)
		return true;
	return has_offset(stamp) && (int64_t)later->launched_ns > (int64_t)stamp->stop_ns +
									  stamp->offset_ns +
									  CLOCK_SLACK_NS;
}

/* Where the operation 64 later has no record, the last one before it was launched no later. */
static void find_fresh(const struct order *order)
{
	size_t later = 0;

	for (size_t i = 0; i < order->count; i++) {
		struct nccl_stamp *stamp = &order->stamps[i];

		later = later < i ? i : later;
		while (later + 1 < order->count &&
		       order->stamps[later + 1].ordinal - stamp->ordinal <= NCCL_RING_PLACES)
			later++;
		if (has(stamp, NCCL_STAMP_TIMED) && !is_wrong(stamp) &&
		    is_fresh(order, stamp, &order->stamps[later]))
			stamp->flags |= NCCL_STAMP_PROVEN;
	}
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* By the launches before, [1] of batches, which may overlap others: NCCL tells of launches by
 * thread, and of a batch by its times. */
static void find_early_behind_fresh(const struct order *order)
{
	uint64_t done[2] = {0, 0}, launch[2] = {0, 0};

	for (size_t i = 0; i < order->count; i++) {
		struct nccl_stamp *stamp = &order->stamps[i];
		unsigned batched = has(stamp, NCCL_STAMP_BATCHED);

		if (!has(stamp, NCCL_STAMP_TIMED | NCCL_STAMP_ORDERED) || is_wrong(stamp))
			continue;
		if (!has(stamp, NCCL_STAMP_SAME_LAUNCH)) {
			for (unsigned k = 0; k < 2; k++)
				done[k] = larger(done[k], launch[k]);
			launch[0] = launch[1] = 0;
		}
		if (stamp->start_ns < (batched ? done[0] : larger(done[0], done[1]))) {
			stamp->flags &= ~(uint32_t)NCCL_STAMP_PROVEN;
			stamp->flags |= NCCL_STAMP_EARLY;
		} else if (has(stamp, NCCL_STAMP_PROVEN)) {
			launch[batched] = larger(launch[batched], stamp->stop_ns);
		}
	}
}

static void find_late(const struct order *order)
{
	uint64_t next[2] = {UINT64_MAX, UINT64_MAX}, launch[2] = {UINT64_MAX, UINT64_MAX};

	for (size_t i = order->count; i-- > 0;) {
		struct nccl_stamp *stamp = &order->stamps[i];
		unsigned batched = has(stamp, NCCL_STAMP_BATCHED);

		if (!has(stamp, NCCL_STAMP_ORDERED))
			continue;
		if (has(stamp, NCCL_STAMP_TIMED) && !is_wrong(stamp)) {
			launch[batched] = smaller(launch[batched], stamp->start_ns);
			if (!has(stamp, NCCL_STAMP_PROVEN) &&
			    stamp->stop_ns > (batched ? next[0] : smaller(next[0], next[1])))
				stamp->flags |= NCCL_STAMP_LATE;
		}
		if (!has(stamp, NCCL_STAMP_SAME_LAUNCH)) {
			for (unsigned k = 0; k < 2; k++)
				next[k] = smaller(next[k], launch[k]);
			launch[0] = launch[1] = UINT64_MAX;
		}
	}
}

/* ---- what follows ---- */

/* launched_ns becomes the begin of the first that its launch holds, by the GPU. */
static void find_begins(const struct order *order)
{
	uint64_t begin = UINT64_MAX;

	for (size_t i = order->count; i-- > 0;) {
		struct nccl_stamp *stamp = &order->stamps[i];

		if (has(stamp, NCCL_STAMP_TIMED) && !is_wrong(stamp))
			begin = smaller(begin, stamp->start_ns);
		stamp->launched_ns = begin;
		if (!has(stamp, NCCL_STAMP_SAME_LAUNCH))
			begin = UINT64_MAX;
	}
	for (size_t i = 1; i < order->count; i++) {
		if (has(&order->stamps[i], NCCL_STAMP_SAME_LAUNCH))
			order->stamps[i].launched_ns = order->stamps[i - 1].launched_ns;
	}
}

/* Wrong times are times of others, so one that follows another one begins no sooner. */
static void find_shortest(struct order *order)
{
	int64_t shortest = INT64_MAX, many = 1, most = 1;

	for (size_t i = 1; i < order->count; i++) {
		const struct nccl_stamp *stamp = &order->stamps[i], *before = stamp - 1;
		int64_t apart = (int64_t)(stamp->start_ns - before->start_ns);

		many = has(stamp, NCCL_STAMP_SAME_LAUNCH) ? many + 1 : 1;
		most = many > most ? many : most;
		if (many == 1 && stamp->ordinal == before->ordinal + 1 &&
		    has(stamp, NCCL_STAMP_TIMED) && has(before, NCCL_STAMP_TIMED) &&
		    !is_wrong(stamp) && !is_wrong(before) && apart > 0 && apart < shortest)
			shortest = apart;
	}
	order->shortest_ns = shortest == INT64_MAX ? 0 : shortest / most;
}

static bool can_be_proven(const struct nccl_stamp *stamp)
{
	return has(stamp, NCCL_STAMP_TIMED) && !is_wrong(stamp) && !has(stamp, NCCL_STAMP_PROVEN);
}

/* The first of so many: the last ones may have been read after a pause, and quickly by chance. */
static void find_in_step(const struct order *order)
{
	unsigned steps = 0;

	for (size_t i = 0; i < order->count; i++) {
		const struct nccl_stamp *stamp = &order->stamps[i];
		int64_t behind = (int64_t)(stamp->read_ns - stamp->stop_ns) - stamp->offset_ns;

		if (!has_offset(stamp) || behind > READ_SLACK_NS ||
		    (i && stamp->ordinal != stamp[-1].ordinal + 1))
			steps = 0;
		else if (++steps >= STEPS)
			order->stamps[i + 1 - STEPS].flags |= NCCL_STAMP_PROVEN;
	}
}

/* The proven ones of the next 64 ordinals: when they, or others of their launch, began. */
struct ahead {
	uint64_t begin_ns[NCCL_RING_PLACES];
	uint64_t known; /* bit n: ordinal + 1 + n is one */
};

static void keep_ahead(struct ahead *ahead, const struct nccl_stamp *stamp, uint64_t below)
{
	uint64_t by = stamp->ordinal - below;

	ahead->begin_ns[stamp->ordinal % NCCL_RING_PLACES] = stamp->launched_ns;
	ahead->known = by && by < NCCL_RING_PLACES ? ahead->known << by : 0;
	if (has(stamp, NCCL_STAMP_PROVEN) && by && by <= NCCL_RING_PLACES)
		ahead->known |= UINT64_C(1) << (by - 1);
}

static bool is_followed(const struct ahead *ahead, const struct nccl_stamp *stamp)
{
	uint64_t furthest;

	if (!ahead->known)
		return false;
	furthest = stamp->ordinal + NCCL_RING_PLACES - (unsigned)__builtin_clzll(ahead->known);
	return stamp->stop_ns <= ahead->begin_ns[furthest % NCCL_RING_PLACES];
}

static bool find_followed(const struct order *order)
{
	struct ahead ahead = {.known = 0};
	bool any = false;

	for (size_t i = order->count; i-- > 0;) {
		struct nccl_stamp *stamp = &order->stamps[i];

		if (i + 1 < order->count)
			keep_ahead(&ahead, stamp + 1, stamp->ordinal);
		if (!can_be_proven(stamp) || !is_followed(&ahead, stamp))
			continue;
		stamp->flags |= NCCL_STAMP_PROVEN;
		any = true;
	}
	return any;
}

static bool find_soon(const struct order *order)
{
	int64_t others = (NCCL_RING_PLACES - 1) *
			 (order->shortest_ns < TIME_MAX / 64 ? order->shortest_ns : TIME_MAX / 64);
	bool any = false;

	for (size_t i = 1; i < order->count; i++) {
		struct nccl_stamp *stamp = &order->stamps[i];
		const struct nccl_stamp *before = stamp - 1;

		if (!can_be_proven(stamp) || !has_offset(stamp) ||
		    !has(before, NCCL_STAMP_PROVEN | NCCL_STAMP_ORDERED) ||
		    !has(stamp, NCCL_STAMP_ORDERED) || stamp->ordinal != before->ordinal + 1)
			continue;
		if ((int64_t)(stamp->read_ns - before->stop_ns) - stamp->offset_ns + READ_SLACK_NS <
		    others) {
			stamp->flags |= NCCL_STAMP_PROVEN;
			any = true;
		}
	}
	return any;
}

void nccl_order_decide(struct nccl_stamp *stamps, size_t count, uint64_t started)
{
	struct order order = {stamps, count, started, 0};

	prepare(&order);
	if (count && stamps[count - 1].ordinal >= started)
		order.started = stamps[count - 1].ordinal | 1; /* that one, at the least */
	bound_offsets(&order, true);
	bound_offsets(&order, false);
	find_early(&order);
	find_fresh(&order);
	find_early_behind_fresh(&order);
	find_late(&order);
	find_begins(&order);
	find_shortest(&order);
	find_in_step(&order);
	for (unsigned round = 0; round < ROUNDS; round++) {
		bool any = find_followed(&order);

		if (!find_soon(&order) && !any)
			break;
	}
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A device with a ring of 64 times per channel, and a thread that reads it too late now and then:
 * no time that is taken for an operation's own may be another's, and most of the right ones are
 * kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/nccl/order.h"
#include "common/array.h"

#define US            UINT64_C(1000)
#define MS            UINT64_C(1000000)
#define START         (UINT64_C(1000) * 1000 * MS)
#define AHEAD         UINT64_C(1700000000000000000) /* the GPU's clock of the host's, and 8 ppm faster */
#define COUNT         20000
#define MOST_CHANNELS 4

struct run {
	unsigned depth;      /* so many operations the host is ahead at the most */
	unsigned sync_every; /* it waits for all after so many; 0 never */
	unsigned channels;
	uint64_t shortest_ns, longest_ns; /* operations take */
	unsigned waits_per_mille;         /* of them wait 10 ms for another rank */
	unsigned batch;                   /* up to so many are one launch */
	uint64_t read_ns;                 /* a read takes, and up to as much again */
	unsigned stalls;                  /* in 100,000 looks */
	uint64_t stall_ns;                /* up to so long */
	unsigned row;                     /* stalls in a row */
	bool killed;                      /* in the midst of it, at random */
	unsigned kept_percent;            /* of the right times, at the least */
};

struct truth {
	uint64_t launch, start, stop; /* host */
	unsigned of_launch;
};

static uint64_t state;

static uint64_t chance(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return below ? (state >> 11) % below : 0;
}

static uint64_t gpu(uint64_t host)
{
	return host + AHEAD + (host - START) / 125000;
}

/* ---- the host and the device ---- */

static uint64_t duration(const struct run *run)
{
	uint64_t ns = run->shortest_ns + chance(run->longest_ns - run->shortest_ns + 1);

	return chance(1000) < run->waits_per_mille ? ns + 10 * MS : ns;
}

static void play(const struct run *run, struct truth *truth)
{
	uint64_t host = START, device = START;
	unsigned left = 0;

	for (unsigned i = 0; i < COUNT; i++) {
		struct truth *own = &truth[i];

		if (left) {
			left--;
			own->launch = truth[i - 1].launch;
			own->of_launch = truth[i - 1].of_launch;
		} else {
			host += 3 * US + chance(2 * US);
			if (i >= run->depth && host < truth[i - run->depth].stop)
				host = truth[i - run->depth].stop;
			if (run->sync_every && i % run->sync_every == 0 && host < device)
				host = device + 10 * US;
			own->launch = host;
			own->of_launch = i;
			left = run->batch ? (unsigned)chance(run->batch) : 0;
			host += 2 * US;
		}
		device += own->of_launch == i ? 900 : 100;
		if (device < own->launch + 5 * US)
			device = own->launch + 5 * US;
		own->start = device;
		device += duration(run);
		own->stop = device;
	}
}

/* ---- the thread that reads ---- */

/* What the place of `item` holds: of the latest that has begun, or has ended. */
static uint64_t held(const struct truth *truth, unsigned item, uint64_t when, bool start)
{
	while (item + NCCL_DEVICE_RING_LENGTH < COUNT &&
	       (start ? truth[item + NCCL_DEVICE_RING_LENGTH].start
		      : truth[item + NCCL_DEVICE_RING_LENGTH].stop) <= when)
		item += NCCL_DEVICE_RING_LENGTH;
	return start ? truth[item].start : truth[item].stop;
}

static uint64_t stall(const struct run *run, unsigned *row)
{
	if (!*row && chance(100000) >= run->stalls)
		return 0;
	*row = *row ? *row - 1 : run->row;
	return chance(run->stall_ns);
}

static void read_all(const struct run *run, const struct truth *truth,
		     struct nccl_operation_stamps *stamps)
{
	uint64_t now = START,
		 cut = run->killed ? truth[COUNT / 2].stop + chance(5 * MS) : UINT64_MAX;
	unsigned row = 0;

	for (unsigned i = 0; i < COUNT; i++) {
		struct nccl_operation_stamps *stamp = &stamps[i];
		uint64_t start = UINT64_MAX, stop = 0;

		*stamp = (struct nccl_operation_stamps){.ordinal = i,
							.place = i,
							.host_launched_ns = truth[i].launch,
							.flags = NCCL_STAMP_LAUNCH_KNOWN};
		for (unsigned channel = 0; channel < run->channels; channel++) {
			uint64_t seen;

			now += run->read_ns / 2 + chance(run->read_ns / 2 + 1);
			if (now < truth[i].start + 700)
				now = truth[i].start + 700;
			now += channel ? 0 : stall(run, &row);
			seen = held(truth, i, now, true);
			start = seen < start ? seen : start;
		}
		for (unsigned channel = 0; channel < run->channels; channel++) {
			uint64_t seen;

			now += run->read_ns / 2 + chance(run->read_ns / 2 + 1);
			if (now < truth[i].stop + 700)
				now = truth[i].stop + 700;
			now += channel ? 0 : stall(run, &row);
			seen = held(truth, i, now, false);
			stop = seen > stop ? seen : stop;
		}
		if (now > cut)
			continue; /* nobody has heard of it */
		stamp->host_read_ns = now;
		stamp->gpu_start_ns = gpu(start);
		stamp->gpu_stop_ns = gpu(stop);
		if (stop >= start)
			stamp->flags |= NCCL_STAMP_HAS_GPU_TIMES;
	}
}

/* ---- what is made of it ---- */

static bool is_right(const struct truth *truth, const struct nccl_operation_stamps *stamp)
{
	const struct truth *own = &truth[stamp->ordinal];

	return gpu(own->start) == stamp->gpu_start_ns && gpu(own->stop) == stamp->gpu_stop_ns;
}

/* Operations that were launched are started, also those that nobody has heard of since. */
static void check(const struct run *run, unsigned number, uint64_t seed)
{
	struct truth *truth = calloc(COUNT, sizeof(*truth));
	struct nccl_operation_stamps *stamps = calloc(COUNT, sizeof(*stamps));
	unsigned right = 0, kept = 0, wrong = 0;

	assert_non_null(truth);
	assert_non_null(stamps);
	state = UINT64_C(0x9e3779b97f4a7c15) * (seed + 1);
	play(run, truth);
	read_all(run, truth, stamps);
	nccl_mark_proven_stamps(stamps, COUNT, COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		const struct nccl_operation_stamps *stamp = &stamps[i];

		if (!(stamp->flags & NCCL_STAMP_HAS_GPU_TIMES))
			continue;
		if (!is_right(truth, stamp)) {
			wrong++;
			if (stamp->flags & NCCL_STAMP_PROVEN)
				fail_msg("run %u, seed %llu: times of operation %u are wrong",
					 number, (unsigned long long)seed, i);
			continue;
		}
		right++;
		kept += (stamp->flags & NCCL_STAMP_PROVEN) != 0;
	}
	if (getenv("KYMO_TEST_VERBOSE"))
		print_message("run %u, seed %llu: %u right, %u of them kept; %u wrong\n", number,
			      (unsigned long long)seed, right, kept, wrong);
	if (kept * 100 < right * run->kept_percent)
		fail_msg("run %u, seed %llu: %u of %u kept", number, (unsigned long long)seed, kept,
			 right);
	free(truth);
	free(stamps);
}

static void nothing_wrong_is_proven(void **unused)
{
	static const struct run runs[] = {
		/* depth, sync, channels, shortest, longest, waits, batch, read, stalls, ... */
		{1000, 0, 1, 3000, 3500, 0, 0, 400, 20, 4 * MS, 0, false, 98},
		{1000, 0, 4, 6000, 80000, 0, 0, 400, 20, 10 * MS, 0, false, 98},
		{1000, 500, 2, 3000, 12000, 0, 0, 400, 20, 6 * MS, 3, false, 95},
		{1000, 0, 1, 3000, 250000, 2, 0, 400, 20, 30 * MS, 0, false, 90},
		{30, 0, 2, 3000, 12000, 2, 0, 400, 20, 6 * MS, 0, false, 98},
		{1000, 1, 2, 3000, 12000, 1, 0, 400, 50, 6 * MS, 1, false, 98},
		{1000, 70, 2, 3000, 12000, 1, 0, 400, 50, 6 * MS, 1, false, 98},
		{1000, 0, 2, 3000, 12000, 0, 4, 400, 10, 6 * MS, 1, false, 90},
		{1000, 130, 2, 3000, 12000, 1, 40, 400, 10, 6 * MS, 1, false, 90},
		/* Many pauses, in rows. */
		{1000, 0, 1, 3000, 12000, 1, 0, 400, 200, 6 * MS, 4, false, 20},
		{1000, 300, 2, 3000, 12000, 1, 0, 400, 500, 2 * MS, 2, false, 50},
		/* The thread cannot keep up, keeps up by chance, and just so. */
		{1000, 2000, 4, 3000, 3500, 0, 0, 2000, 0, 0, 0, false, 50},
		{1000, 0, 1, 3000, 3100, 0, 0, 2700, 20, 2 * MS, 0, false, 50},
		{1000, 0, 1, 3000, 3000, 0, 0, 1950, 20, 2 * MS, 0, false, 50},
		/* Killed with a full queue. */
		{1000, 0, 1, 3000, 3500, 0, 0, 400, 20, 4 * MS, 0, true, 90},
		{1000, 0, 4, 6000, 80000, 1, 0, 400, 20, 10 * MS, 0, true, 80},
		{1000, 0, 1, 3000, 3000, 0, 0, 1950, 20, 2 * MS, 0, true, 0},
		{1000, 0, 1, 3000, 3000, 0, 0, 2600, 20, 2 * MS, 0, true, 0},
		{1000, 0, 4, 3000, 3500, 0, 0, 2000, 0, 0, 0, true, 0},
	};

	(void)unused;
	for (unsigned i = 0; i < ARRAY_SIZE(runs); i++) {
		for (uint64_t seed = 0; seed < 6; seed++)
			check(&runs[i], i, seed);
	}
}

/* ---- one by one ---- */

static struct nccl_operation_stamps stamp_of(uint64_t ordinal, uint64_t launched, uint64_t read,
					     uint64_t start, uint64_t stop)
{
	return (struct nccl_operation_stamps){ordinal,
					      START + launched,
					      START + read,
					      AHEAD + START + start,
					      AHEAD + START + stop,
					      0,
					      (uint32_t)ordinal,
					      NCCL_STAMP_HAS_GPU_TIMES | NCCL_STAMP_LAUNCH_KNOWN};
}

/* After replays that nobody counted, times are those of work before. */
static void times_of_earlier_work(void **unused)
{
	struct nccl_operation_stamps stamps[200];

	(void)unused;
	for (unsigned i = 0; i < 200; i++) {
		uint64_t at = i * 100 * US, from = i < 100 ? at + 10 * US : at - 390 * US;

		stamps[i] = stamp_of(i, at, at + 50 * US, from, from + 30 * US);
		if (i >= 100)
			stamps[i].host_read_ns = START + at + 6 * US; /* there already */
	}
	nccl_mark_proven_stamps(stamps, 200, 200);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(!!(stamps[i].flags & NCCL_STAMP_PROVEN), i < 100);
}

/* In any order, with holes, the same number twice, and numbers that are no times. */
static void damaged(void **unused)
{
	struct nccl_operation_stamps stamps[300];

	(void)unused;
	for (uint64_t seed = 1; seed < 2000; seed++) {
		size_t count = 0;

		state = seed * UINT64_C(0x9e3779b97f4a7c15);
		for (; count < chance(300); count++) {
			uint64_t at = chance(2000) * US;

			stamps[count] = stamp_of(chance(400), at, at + chance(50 * US),
						 at + chance(20 * US), at + chance(40 * US));
			stamps[count].flags = (uint32_t)chance(128);
			if (chance(10) == 0)
				((uint64_t *)&stamps[count])[chance(6)] = state;
			if (chance(10) == 0)
				((uint64_t *)&stamps[count])[chance(6)] = chance(3) - 1;
		}
		nccl_mark_proven_stamps(stamps, count, chance(2) ? chance(500) : state);
		for (size_t i = 1; i < count; i++)
			assert_true(stamps[i - 1].ordinal <= stamps[i].ordinal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_wrong_is_proven),
		cmocka_unit_test(times_of_earlier_work),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests_name("analysis/nccl_order", tests, NULL, NULL);
}

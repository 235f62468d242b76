/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels of a communicator run in the order of their launches. Times that say otherwise are of
 * earlier work, where NCCL has lost count, or of later work, where the device went round its ring.
 */
#include <stdbool.h>

#include "../assert_at.h"
#include "common/array.h"
#include "drive.h"

#define GPU 1756135989724672000u
static const struct drive_identity identity = {"order", 0x77, 1, 4, 2};

/* ---- a channel that is out of step ---- */

static void out_of_step(void)
{
	static const struct {
		bool launch;
		unsigned channel;
		uint64_t start, stop;
	} told[] = {
		{true, 0, GPU, GPU + 1000},         {true, 1, GPU + 2000, GPU + 3000},
		{false, 2, GPU + 500, GPU + 2500}, /* a group: of the same launch, and too early */
		{false, 3, GPU + 1500, GPU + 2500}, {true, 4, GPU + 4000, GPU + 5000},
		{true, 5, GPU + 4500, GPU + 5500}, /* in the midst of the one before */
		{true, 4, GPU + 6000, GPU + 7000},
	};
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity);

	for (uint64_t i = 0; i < ARRAY_SIZE(told); i++) {
		void *operation;

		if (told[i].launch)
			drive_stop(&driver,
				   drive_simple(&driver, context, NULL, NCCL_KIND_KERNEL_LAUNCH));
		operation = drive_collective(&driver, context, NULL, "AllReduce", i, 1);
		drive_stop(&driver, operation);
		drive_channel_stop(
			&driver,
			drive_channel(&driver, context, operation, told[i].channel, told[i].start),
			told[i].stop);
	}
	drive_wait_finished(ARRAY_SIZE(told));
}

static void test_out_of_step(void **state)
{
	(void)state;
	drive_directory();
	assert_child(out_of_step);
	for (uint64_t i = 0; i < 7; i++)
		assert_int_equal_at(i,
				    !!(drive_find(drive_read(), "AllReduce", i)->flags &
				       NCCL_OPERATION_ALIASED),
				    i == 2 || i == 5);
}

/* ---- the device goes round its ring: times of later operations, until the reader is back ---- */

#define OVERRUN_FIRST 10
#define OVERRUN_LAST  99
#define OVERRUN_COUNT 200

static void overrun(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *operations[OVERRUN_COUNT];

	for (uint64_t i = 0; i < OVERRUN_COUNT; i++) {
		drive_stop(&driver, drive_simple(&driver, context, NULL, NCCL_KIND_KERNEL_LAUNCH));
		operations[i] = drive_collective(&driver, context, NULL, "AllReduce", i, 1);
		drive_stop(&driver, operations[i]);
	}
	for (uint64_t i = 0; i < OVERRUN_COUNT; i++) {
		bool late = i >= OVERRUN_FIRST && i <= OVERRUN_LAST;
		uint64_t start = GPU + (i + (late ? 64 : 0)) * 1000;

		drive_channel_stop(&driver,
				   drive_channel(&driver, context, operations[i], 0, start),
				   start + 500);
	}
	drive_wait_finished(OVERRUN_COUNT);
}

/* The last of them is found; those behind have times of their own, and keep them. */
static void test_overrun(void **state)
{
	const struct recording *recording;

	(void)state;
	drive_directory();
	assert_child(overrun);
	recording = drive_read();
	for (uint64_t i = 0; i < OVERRUN_COUNT; i++)
		assert_int_equal_at(
			i,
			!!(drive_find(recording, "AllReduce", i)->flags & NCCL_OPERATION_ALIASED),
			i == OVERRUN_LAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_out_of_step),
		cmocka_unit_test(test_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Stamps that NCCL took on two GPUs, with those of 630 operations overwritten: exactly these are
 * not proven. See nccl_stamps/README.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "analysis/nccl/nccl.h"
#include "analysis/nccl/order.h"

#define MOST 4096

static const char *path;

struct rank {
	struct nccl_operation_stamps stamps[MOST];
	int64_t cupti_ns[MOST];
	size_t count;
};

static void read_rank(struct rank *rank, unsigned wanted)
{
	gzFile file = gzopen(path, "r");
	uint64_t launched = 0, start = 0, ordinal, launch, begin, read, lasted;
	unsigned number;
	char text[256];

	assert_non_null(file);
	rank->count = 0;
	while (gzgets(file, text, sizeof(text))) {
		struct nccl_operation_stamps *stamp = &rank->stamps[rank->count];

		assert_int_equal(sscanf(text,
					"%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
					" %" SCNu64 " %" SCNd64,
					&number, &ordinal, &launch, &read, &begin, &lasted,
					&rank->cupti_ns[rank->count]),
				 7);
		if (number != wanted)
			continue;
		assert_true(rank->count < MOST);
		launched += launch;
		start += begin;
		*stamp = (struct nccl_operation_stamps){
			.ordinal = ordinal,
			.host_launched_ns = launched,
			.host_read_ns = launched + read,
			.gpu_start_ns = start,
			.gpu_stop_ns = start + lasted,
			.place = (uint32_t)rank->count++,
			.flags = NCCL_STAMP_HAS_GPU_TIMES | NCCL_STAMP_LAUNCH_KNOWN,
		};
	}
	gzclose(file);
}

/* Of 14 right ones the kernel ended later than usual behind its last stamp, by CUPTI. */
static void overwritten_ones_are_found(void **state)
{
	static struct rank rank;
	unsigned proven = 0, shorter = 0;

	(void)state;
	for (unsigned number = 0; number < 2; number++) {
		read_rank(&rank, number);
		assert_int_equal(rank.count, 1702);
		nccl_mark_proven_stamps(rank.stamps, rank.count, rank.count);
		for (size_t i = 0; i < rank.count; i++) {
			const struct nccl_operation_stamps *stamp = &rank.stamps[i];
			int64_t more = (int64_t)(stamp->gpu_stop_ns - stamp->gpu_start_ns) +
				       NCCL_KERNEL_TIME_OUTSIDE_STAMPS_NS -
				       rank.cupti_ns[stamp->place];

			if (!(stamp->flags & NCCL_STAMP_PROVEN))
				continue;
			assert_true(more < 600);
			shorter += more < -600;
			proven++;
		}
	}
	assert_true(shorter <= 40);
	assert_int_equal(proven, 2 * 1702 - 323 - 306);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overwritten_ones_are_found),
	};

	if (count != 2)
		return 2;
	path = arguments[1];
	return cmocka_run_group_tests_name("analysis/nccl_stamps", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The timeline of a page holds so many slices; what it adds up keeps its sums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "output/web/timeline.h"
#include "session_fixture.h"

#define TRACKS 7
#define NAMES  50

struct sums {
	uint64_t duration_ns[TRACKS][NAMES], count[TRACKS][NAMES];
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *state >> 33;
}

static struct timeline_slice make_slice(uint64_t *state, uint64_t duration_ns)
{
	return (struct timeline_slice){
		.start_ns = FIXTURE_START_NS + next_random(state) % duration_ns,
		.duration_ns = next_random(state) % 1000 == 0 ? 5000000 : next_random(state) % 9000,
		.count = 1,
		.track = (uint32_t)(next_random(state) % TRACKS),
		.name = (uint32_t)(next_random(state) % NAMES)};
}

static void add_to_sums(struct sums *sums, const struct timeline_slice *slices, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		sums->duration_ns[slices[i].track][slices[i].name] += slices[i].duration_ns;
		sums->count[slices[i].track][slices[i].name] += slices[i].count;
	}
}

/* `count` slices through a store: what it holds is what went in. */
static void expect_sums_are_kept(uint32_t count, bool is_merged)
{
	struct page_writer page = {.session = fixture_session()};
	struct timeline timeline = {.page = &page};
	struct timeline_store *store = &timeline.spans;
	static struct sums wanted, found;
	uint64_t state = 1, duration_ns = page.session->end_ns - page.session->start_ns;

	memset(&wanted, 0, sizeof(wanted));
	memset(&found, 0, sizeof(found));
	for (uint32_t i = 0; i < count; i++) {
		struct timeline_slice slice = make_slice(&state, duration_ns);
		add_to_sums(&wanted, &slice, 1);
		assert_int_equal(timeline_add_slice(&timeline, store, slice), 0);
	}
	add_to_sums(&found, store->slices, store->count);
	add_to_sums(&found, store->merged, store->merged_count);
	assert_memory_equal(&wanted, &found, sizeof(wanted));
	assert_true(store->count <= TIMELINE_STORE_SLICES_MAX);
	assert_true(store->merged_count <= TIMELINE_STORE_SLICES_MAX);
	assert_int_equal(store->merged_slices != 0, is_merged);
	assert_int_equal(store->count + store->merged_slices, count);
	for (uint32_t i = 0; i < store->count && is_merged; i++)
		assert_true(store->slices[i].duration_ns >= store->length_ns);
	timeline_deinit(&timeline);
}

static void few_slices_stay_as_they_are(void **state)
{
	(void)state;
	expect_sums_are_kept(TIMELINE_STORE_SLICES_MAX, false);
}

static void many_slices_keep_their_sums(void **state)
{
	(void)state;
	expect_sums_are_kept(TIMELINE_STORE_SLICES_MAX + 1, true);
	expect_sums_are_kept(3000000, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_slices_stay_as_they_are),
		cmocka_unit_test(many_slices_keep_their_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

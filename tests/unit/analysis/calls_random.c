/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Random calls and regions on one thread, nested and not, in chunks of any size, against a model
 * that is as simple as can be: a list of call paths as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/calls.h"
#include "unit/analysis/calls_fixture.h"
#include "unit/analysis/test_directory.h"

#define FUNCTIONS 6
#define REGIONS   3
#define DEPTH     8
#define STEPS     250
#define PATHS     1000
#define TEXT      1024

static uint64_t random_state;

static uint64_t below(uint64_t limit) /* xorshift64 */
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

/* "f2/r1/f2": function 2 in region 1 in function 2. */
struct path {
	char text[TEXT];
	uint64_t count, open, sum;
};

struct entry {
	bool call;
	uint32_t id;
	uint64_t begin;
	size_t path;
};

static struct {
	struct path paths[PATHS];
	size_t path_count;
	struct entry open[2 * DEPTH];
	size_t depth;
	uint64_t now, unwound, unmatched, calls;
} reference;

static size_t path_of(bool call, uint32_t id)
{
	char text[TEXT], name[8];
	size_t i;

	snprintf(name, sizeof(name), "%c%u", call ? 'f' : 'r', id);
	if (reference.depth)
		snprintf(text, sizeof(text), "%.1000s/%s",
			 reference.paths[reference.open[reference.depth - 1].path].text, name);
	else
		snprintf(text, sizeof(text), "%s", name);
	for (i = 0; i < reference.path_count; i++) {
		if (strcmp(reference.paths[i].text, text) == 0)
			return i;
	}
	assert_true(reference.path_count < PATHS);
	reference.paths[i] = (struct path){.count = 0};
	memcpy(reference.paths[i].text, text, sizeof(text));
	return reference.path_count++;
}

static void enter(bool call, uint32_t id)
{
	size_t path = path_of(call, id);

	reference.open[reference.depth++] = (struct entry){call, id, reference.now, path};
}

static void leave(size_t at)
{
	struct path *path = &reference.paths[reference.open[at].path];

	path->count++;
	path->sum += reference.now - reference.open[at].begin;
	reference.depth--;
	memmove(&reference.open[at], &reference.open[at + 1],
		(reference.depth - at) * sizeof(reference.open[0]));
}

static size_t innermost(bool call, uint32_t id)
{
	size_t at = reference.depth;

	while (at > 0 &&
	       (reference.open[at - 1].call != call || (id && reference.open[at - 1].id != id)))
		at--;
	return at;
}

static size_t count_open(bool call)
{
	size_t count = 0;

	for (size_t i = 0; i < reference.depth; i++)
		count += reference.open[i].call == call;
	return count;
}

/* ---- both streams ---- */

static void new_part(struct calls_fixture *calls, struct spool_fixture *fixture)
{
	uint32_t open[2 * DEPTH];
	uint32_t count = 0, left_out;

	for (size_t i = 0; i < reference.depth; i++) {
		if (reference.open[i].call)
			open[count++] = reference.open[i].id;
	}
	left_out = (uint32_t)below(count + 1);
	if (calls->words || calls->head.ticks)
		calls_fixture_end(calls, fixture);
	calls_fixture_begin(calls, 0, reference.now - below(2), open + left_out, count - left_out);
	calls->head.open_left_out = left_out;
}

static void exit_call(struct calls_fixture *calls, uint32_t id)
{
	size_t at = innermost(true, id);

	calls_fixture_word(calls, reference.now, id, 1);
	if (at == 0) {
		reference.unmatched++;
		return;
	}
	for (size_t i = reference.depth; i-- > at;) {
		if (!reference.open[i].call)
			continue;
		reference.unwound++;
		leave(i);
	}
	leave(at - 1);
}

static void end_calls(struct calls_fixture *calls)
{
	calls_fixture_word(calls, reference.now, 0, 1);
	for (size_t i = reference.depth; i-- > 0;) {
		if (reference.open[i].call)
			leave(i);
	}
}

static void call_step(struct calls_fixture *calls)
{
	uint32_t id = (uint32_t)below(FUNCTIONS) + 1;
	size_t at = innermost(true, 0);

	if (below(40) == 0) {
		end_calls(calls);
	} else if (below(12) == 0) {
		exit_call(calls, id);
	} else if (count_open(true) < DEPTH && below(2)) {
		calls_fixture_word(calls, reference.now, id, 0);
		enter(true, id);
		reference.calls++;
	} else if (at) {
		exit_call(calls, reference.open[at - 1].id);
	}
}

static void region_step(struct spool_fixture *fixture)
{
	uint32_t id = (uint32_t)below(REGIONS) + 1;
	size_t at = innermost(false, 0);

	if (count_open(false) < DEPTH && below(2)) {
		fixture_begin(fixture, reference.now, id);
		enter(false, id);
	} else if (at) {
		fixture_end(fixture, reference.now);
		leave(at - 1);
	}
}

/* Chunks of a file are made one after the other, so the steps are played twice: for the records of
 * regions, and for the words. */
static void play(struct spool_fixture *fixture, struct calls_fixture *calls, bool with_regions)
{
	uint64_t seed = random_state;
	struct spool_fixture nothing;
	struct calls_fixture ignored = {0};

	for (unsigned pass = 0; pass < 2; pass++) {
		struct spool_fixture *regions = pass == 0 ? fixture : &nothing;
		struct calls_fixture *words = pass == 0 ? &ignored : calls;

		random_state = seed;
		reference.path_count = reference.depth = 0;
		reference.unwound = reference.unmatched = reference.calls = 0;
		reference.now = FIXTURE_START + 10;
		fixture_open(&nothing, "/dev/null", 1, 0);
		fixture_region_span(regions, 0, 100, reference.now, NULL, 0);
		new_part(words, pass == 0 ? &nothing : fixture);
		for (unsigned i = 0; i < STEPS; i++) {
			reference.now += 1 + below(below(8) ? 50 : 100000);
			if (below(30) == 0)
				new_part(words, pass == 0 ? &nothing : fixture);
			if (with_regions && below(3) == 0)
				region_step(regions);
			else
				call_step(words);
			if (below(10) == 0)
				calls_fixture_raw(words, 0);
		}
		calls_fixture_end(words, pass == 0 ? &nothing : fixture);
		fixture_end_chunk(fixture);
		fixture_close(&nothing);
	}
	fixture->header.end_ticks = reference.now;
	for (size_t i = 0; i < reference.depth; i++) {
		struct path *path = &reference.paths[reference.open[i].path];

		path->open++;
		path->sum += reference.now - reference.open[i].begin;
	}
}

/* ---- comparison ---- */

static void text_of(const struct session *session, uint32_t node, char *text, size_t size)
{
	const struct model_region_node *it = &session_get_regions(session)->nodes[node];
	const struct model_region *region = &session_get_regions(session)->regions[it->region];
	char outer[TEXT] = "";

	if (it->parent != MODEL_ENTRY_INDEX_NONE)
		text_of(session, it->parent, outer, sizeof(outer));
	if (region->kind == SPOOL_REGION_FUNCTION)
		snprintf(text, size, "%.1000s%sf%u", outer, *outer ? "/" : "",
			 (unsigned)(region->address / 0x100));
	else
		snprintf(text, size, "%.1000s%s%s", outer, *outer ? "/" : "", region->name);
}

static const struct path *find_path(const char *text)
{
	for (size_t i = 0; i < reference.path_count; i++) {
		if (strcmp(reference.paths[i].text, text) == 0)
			return &reference.paths[i];
	}
	fail_msg("no path %s", text);
	return NULL;
}

static void compare(const struct session *session)
{
	const struct model_regions *regions = session_get_regions(session);

	assert_int_equal(regions->node_count, reference.path_count);
	assert_int_equal(session_get_calls(session)->recorded, reference.calls);
	assert_int_equal(session_get_calls(session)->unwound, reference.unwound);
	assert_int_equal(session_get_calls(session)->unmatched, reference.unmatched);
	for (uint32_t i = 0; i < regions->node_count; i++) {
		const struct model_component_statistics *wall =
			&regions->statistics[(size_t)i * regions->component_count];
		const struct path *path;
		char text[TEXT];

		text_of(session, i, text, sizeof(text));
		path = find_path(text);
		assert_int_equal(regions->nodes[i].count, path->count);
		assert_int_equal(regions->nodes[i].open, path->open);
		assert_true(wall[0].sum == (double)path->sum);
	}
}

/* ---- a tree of few nodes ---- */

struct sums {
	double sum, inclusive;
	uint64_t count, open;
};

static bool is_inside_itself(const struct model_regions *regions, uint32_t node)
{
	uint32_t region = regions->nodes[node].region;

	while ((node = regions->nodes[node].parent) != MODEL_ENTRY_INDEX_NONE) {
		if (regions->nodes[node].region == region && regions->nodes[node].count)
			return true;
	}
	return false;
}

static void sum_up(const struct model_regions *regions, uint32_t region, struct sums *ret)
{
	*ret = (struct sums){0};
	for (uint32_t i = 0; i < regions->node_count; i++) {
		const struct model_component_statistics *wall =
			&regions->statistics[(size_t)i * regions->component_count];

		if (regions->nodes[i].region != region)
			continue;
		ret->count += regions->nodes[i].count;
		ret->open += regions->nodes[i].open;
		ret->sum += wall->sum;
		ret->inclusive += is_inside_itself(regions, i) ? 0 : wall->sum;
	}
	for (uint32_t i = 0; i < regions->dropped_sum_count; i++) {
		const struct model_region_dropped_sum *rest = &regions->dropped_sums[i];

		if (rest->region != region)
			continue;
		ret->count += rest->count;
		ret->open += rest->open;
		ret->sum += rest->calls.sum;
		ret->inclusive += rest->inclusive;
	}
}

/* Whatever was forgotten of the tree, each region has all its calls. */
static void compare_few(const struct session *session, const char *directory)
{
	struct session_options options = {
		.skip_symbolizing = true, .symbol_cache_directory = "", .profile_nodes = 16};
	struct session *few = test_session(directory, &options);
	const struct model_regions *regions = session_get_regions(session);

	assert_true(regions->dropped_sum_count == 0);
	assert_true(regions->node_count <= 16 ||
		    session_get_regions(few)->node_count < regions->node_count);
	for (uint32_t i = 0; i < regions->region_count; i++) {
		struct sums all, kept;

		sum_up(regions, i, &all);
		sum_up(session_get_regions(few), i, &kept);
		assert_int_equal(kept.count, all.count);
		assert_int_equal(kept.open, all.open);
		assert_true(kept.sum == all.sum);
		if (all.open == 0) /* else it depends on when which call was forgotten */
			assert_true(kept.inclusive == all.inclusive);
	}
	session_close(few);
}

static void run(const char *directory, bool with_regions)
{
	struct plan_function functions[FUNCTIONS];
	char plan[4096];

	for (unsigned i = 0; i < FUNCTIONS; i++)
		functions[i] = (struct plan_function){.vaddr = 0x100 * (i + 1), .size = 16};
	snprintf(plan, sizeof(plan), "%s/plan", directory);
	calls_fixture_plan(plan, functions, FUNCTIONS);
	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct spool_fixture fixture;
		struct calls_fixture calls = {0};
		struct session *session;
		char name[4];

		random_state = seed * 0x9e3779b97f4a7c15;
		fixture_open_in(&fixture, directory, 100, 0);
		fixture.header.state = SPOOL_STATE_OPEN; /* killed */
		fixture_clock(&fixture, FIXTURE_START);
		calls_fixture_instrumented(&fixture, FIXTURE_START, 1, FUNCTIONS, 0, plan,
					   "/bin/x");
		for (unsigned i = 1; i <= REGIONS; i++) {
			snprintf(name, sizeof(name), "r%u", i);
			fixture_region(&fixture, i, "test", name);
		}
		fixture_end_chunk(&fixture);
		play(&fixture, &calls, with_regions);
		fixture_close(&fixture);
		session = test_session(directory, NULL);
		compare(session);
		compare_few(session, directory);
		session_close(session);
	}
}

static void calls_alone(void **state)
{
	run(*state, false);
}

static void calls_and_regions(void **state)
{
	run(*state, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_alone, test_directory_create,
						test_directory_remove),
		cmocka_unit_test_setup_teardown(calls_and_regions, test_directory_create,
						test_directory_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Call trees from random events, balanced and not, against a model that is as simple as can be: a
 * list of call paths as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/regions.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

#define NAMES   5
#define DEPTH   6
#define THREADS 3
#define EVENTS  400
#define PATHS   4000
#define TEXT    256

static uint64_t random_state;

static uint64_t below(uint64_t limit) /* xorshift64 */
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

/* A call path, the thread in front: "1/2/2" is region 2 in region 2 on thread 1. */
struct path {
	char text[TEXT];
	uint64_t count, open, sum, minimum, maximum, open_begins;
};

struct entry {
	uint64_t region, begin;
	size_t path;
	size_t left; /* number, from 1: a region around it ended without it */
	bool ended;  /* then, because its own end never comes */
};

/* Steps are played twice: what is left is known from the first time. */
static bool knows_ends;
static bool has_end[THREADS * EVENTS * DEPTH];

static struct {
	struct path paths[PATHS];
	size_t path_count;
	struct entry open[DEPTH];
	size_t depth;
	uint64_t thread, now, unbalanced, events;
	size_t left;
} reference;

static size_t path_of(uint64_t region)
{
	char text[TEXT];
	size_t i, depth = reference.depth;

	while (depth && reference.open[depth - 1].ended)
		depth--;
	if (depth)
		snprintf(text, sizeof(text), "%.250s/%u",
			 reference.paths[reference.open[depth - 1].path].text, (unsigned)region);
	else
		snprintf(text, sizeof(text), "%u/%u", (unsigned)reference.thread, (unsigned)region);
	for (i = 0; i < reference.path_count; i++) {
		if (strcmp(reference.paths[i].text, text) == 0)
			return i;
	}
	assert_true(reference.path_count < PATHS);
	memset(&reference.paths[i], 0, sizeof(reference.paths[i]));
	memcpy(reference.paths[i].text, text, sizeof(text));
	return reference.path_count++;
}

static void call(size_t index, uint64_t duration)
{
	struct path *path = &reference.paths[index];

	if (path->count++ == 0 || duration < path->minimum)
		path->minimum = duration;
	if (duration > path->maximum)
		path->maximum = duration;
	path->sum += duration;
}

static void leave(size_t at)
{
	if (!reference.open[at].ended)
		call(reference.open[at].path, reference.now - reference.open[at].begin);
	reference.depth--;
	memmove(&reference.open[at], &reference.open[at + 1],
		(reference.depth - at) * sizeof(reference.open[0]));
}

static void leave_by_own_end(size_t at)
{
	if (!knows_ends && reference.open[at].left)
		has_end[reference.open[at].left] = true;
	leave(at);
}

/* What began in a region that ends, or in one that ends with it, and has no end, ends now. */
static void end_lost_ones_in(size_t at)
{
	bool goes_on = false;

	for (size_t i = at + 1; i < reference.depth; i++) {
		struct entry *entry = &reference.open[i];

		if (entry->ended)
			continue;
		if (!entry->left)
			entry->left = ++reference.left;
		goes_on |= !knows_ends || has_end[entry->left];
		if (goes_on)
			continue;
		reference.unbalanced++;
		call(entry->path, reference.now - entry->begin);
		entry->ended = true;
	}
}

static void leave_other(uint64_t region, unsigned how)
{
	size_t at = reference.depth;

	while (at > 0 && (reference.open[at - 1].ended || reference.open[at - 1].region != region))
		at--;
	if (at == 0) {
		reference.unbalanced++;
		return;
	}
	if (how == 0)
		end_lost_ones_in(at - 1);
	while (how == 1 && reference.depth > at) {
		reference.unbalanced += !reference.open[reference.depth - 1].ended;
		leave(reference.depth - 1);
	}
	leave_by_own_end(at - 1);
}

static void leave_innermost(void)
{
	size_t at = reference.depth;

	while (at > 0 && reference.open[at - 1].ended)
		at--;
	if (at)
		leave_by_own_end(at - 1);
	else
		reference.unbalanced++;
}

/* One event in both, at the reference's time. */
static void random_event(struct spool_fixture *fixture, uint64_t gap)
{
	uint64_t region = below(NAMES) + 1, duration = below(gap + 1);
	unsigned how = (unsigned)below(2);

	reference.events++;
	switch (below(10)) {
	case 0:
		fixture_end_other(fixture, reference.now, region, how);
		leave_other(region, how);
		return;
	case 1:
		fixture_whole(fixture, reference.now, duration, region);
		call(path_of(region), duration);
		return;
	case 2:
		fixture_mark(fixture, reference.now, region);
		fixture_text_value(fixture, "name", "value");
		return;
	case 3:
	case 4:
	case 5:
	case 6:
		if (reference.depth < DEPTH) {
			size_t path = path_of(region);

			fixture_begin(fixture, reference.now, region);
			reference.open[reference.depth++] =
				(struct entry){region, reference.now, path, 0, false};
			return;
		}
		/* fall through */
	default:
		fixture_end(fixture, reference.now);
		leave_innermost();
	}
}

static void begin_span(struct spool_fixture *fixture)
{
	struct fixture_open open[DEPTH];

	for (size_t i = 0; i < reference.depth; i++)
		open[i] = (struct fixture_open){reference.open[i].region,
						reference.now - reference.open[i].begin};
	if (below(2))
		fixture_end_chunk(fixture);
	fixture_region_span(fixture, reference.thread, 100 + reference.thread, reference.now, open,
			    reference.depth);
}

static void write_thread(struct spool_fixture *fixture, uint64_t thread)
{
	reference.thread = thread;
	reference.depth = 0;
	reference.now = FIXTURE_START + below(1000);
	fixture_end_chunk(fixture);
	begin_span(fixture);
	for (unsigned i = 0; i < EVENTS; i++) {
		uint64_t gap = below(4) ? below(100) : below(1000000);

		if (below(20) == 0)
			begin_span(fixture);
		reference.now += gap;
		random_event(fixture, gap);
	}
	if (reference.now > fixture->header.end_ticks)
		fixture->header.end_ticks = reference.now;
	for (size_t i = 0; i < reference.depth; i++) {
		struct path *path = &reference.paths[reference.open[i].path];

		if (reference.open[i].ended)
			continue;
		path->open++;
		path->open_begins += reference.open[i].begin;
	}
}

static void write_threads(struct spool_fixture *fixture)
{
	reference.path_count = reference.unbalanced = reference.events = reference.left = 0;
	for (uint64_t thread = 0; thread < THREADS; thread++)
		write_thread(fixture, thread);
}

static void write_threads_knowing_ends(struct spool_fixture *fixture)
{
	uint64_t seed = random_state;
	struct spool_fixture nothing;

	knows_ends = false;
	memset(has_end, 0, sizeof(has_end));
	fixture_open(&nothing, "/dev/null", 1, 0);
	write_threads(&nothing);
	fixture_close(&nothing);
	random_state = seed;
	knows_ends = true;
	write_threads(fixture);
}

/* ---- comparison ---- */

static void text_of(const struct session *session, uint32_t node, char *text, size_t size)
{
	const struct model_region_node *it = &session_get_regions(session)->nodes[node];
	char outer[TEXT];

	if (it->parent == MODEL_ENTRY_INDEX_NONE)
		snprintf(outer, sizeof(outer), "%u", session->threads[it->thread].internal_id);
	else
		text_of(session, it->parent, outer, sizeof(outer));
	snprintf(text, size, "%.250s/%s", outer,
		 session_get_regions(session)->regions[it->region].name);
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

static void compare(const struct session *session, uint64_t end)
{
	const struct model_regions *regions = session_get_regions(session);

	assert_int_equal(regions->node_count, reference.path_count);
	assert_int_equal(regions->unbalanced_region_count, reference.unbalanced);
	assert_int_equal(regions->events, reference.events);
	for (uint32_t i = 0; i < regions->node_count; i++) {
		const struct model_component_statistics *wall =
			&regions->statistics[(size_t)i * regions->component_count];
		const struct path *path;
		char text[TEXT];

		text_of(session, i, text, sizeof(text));
		path = find_path(text);
		assert_int_equal(regions->nodes[i].count, path->count);
		assert_int_equal(regions->nodes[i].open, path->open);
		assert_true(wall[0].sum ==
			    (double)(path->sum + path->open * end - path->open_begins));
		assert_true(wall[0].minimum == (double)path->minimum);
		assert_true(wall[0].maximum == (double)path->maximum);
		assert_true(wall[1].sum == (double)path->count);
	}
}

static void random_programs(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct spool_fixture fixture;
		struct session *session;
		char name[2];

		random_state = seed * 0x9e3779b97f4a7c15;
		fixture_open_in(&fixture, *state, 100, 0);
		fixture_clock(&fixture, FIXTURE_START);
		for (unsigned i = 1; i <= NAMES; i++) {
			snprintf(name, sizeof(name), "%u", i);
			fixture_region(&fixture, i, "test", name);
		}
		write_threads_knowing_ends(&fixture);
		fixture_close(&fixture);
		session = test_session(*state, NULL);
		compare(session, fixture.header.end_ticks);
		session_close(session);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_programs, test_directory_create,
						test_directory_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Region records to events and to nodes: each record, recursion, missing begins and ends, holes,
 * profiles that processes kept themselves, filters.
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

#define MS UINT64_C(1000000)

enum { A = 1, B, C, D };

/* ---- events as text ---- */

struct lines {
	const struct session *session;
	FILE *stream;
	uint32_t thread;
	uint64_t last_ns;
};

static void write_values(const struct model_region_event *event, FILE *stream)
{
	for (uint32_t i = 0; i < event->value_count; i++) {
		const struct model_event_value *value = &event->values[i];

		if (value->type == SPOOL_VALUE_TEXT)
			fprintf(stream, " %s=\"%s\"", value->name, value->text);
		else if (value->type == SPOOL_VALUE_REAL)
			fprintf(stream, " %s=%g", value->name, value->real_number);
		else
			fprintf(stream, " %s=%lld", value->name, (long long)value->number);
	}
}

/* "+A@3": A began at 3 ms; "-" ended, "=" whole (with its length), "!" mark, "#" counter, "*"
 * progress; "~" behind it: implied. Threads are separated by "|". */
static int write_event(const struct model_region_event *event, void *context)
{
	static const char signs[] = {'+', '-', '=', '!', '#', '*'};
	struct lines *lines = context;
	const struct session *session = lines->session;

	if (lines->thread != MODEL_ENTRY_INDEX_NONE && lines->thread != event->thread) {
		fputs(" |", lines->stream);
		lines->last_ns = 0;
	}
	lines->thread = event->thread;
	assert_true(event->time_ns >= lines->last_ns);
	lines->last_ns = event->time_ns;
	fprintf(lines->stream, " %c%s@%g", signs[event->kind],
		session_get_regions(session)->regions[event->region].name,
		((double)event->time_ns - (double)(FIXTURE_START + FIXTURE_BOOT)) / MS);
	if (event->kind == MODEL_EVENT_REGION_COMPLETE)
		fprintf(lines->stream, "/%g", (double)event->duration_ns / MS);
	if (event->kind == MODEL_EVENT_COUNTER)
		fprintf(lines->stream, "/%g", event->counter);
	if (event->kind == MODEL_EVENT_PROGRESS)
		fprintf(lines->stream, "/%d", event->progress);
	if (event->is_implied)
		fputc('~', lines->stream);
	write_values(event, lines->stream);
	return 0;
}

static void expect_events(struct session *session, const char *expected)
{
	struct lines lines = {.session = session, .thread = MODEL_ENTRY_INDEX_NONE};
	struct problem problem;
	size_t size;
	char *text;

	lines.stream = open_memstream(&text, &size);
	assert_int_equal(session_visit_region_events(session, write_event, &lines, &problem), 0);
	fclose(lines.stream);
	assert_string_equal(size ? text + 1 : text, expected);
	free(text);
}

/* ---- nodes as text ---- */

static void write_node(const struct session *session, uint32_t index, FILE *stream)
{
	const struct model_regions *regions = session_get_regions(session);
	const struct model_region_node *node = &regions->nodes[index];
	const struct model_component_statistics *wall =
		&regions->statistics[(size_t)index * regions->component_count];

	fprintf(stream, " %s%.*s %llu", node->depth ? "" : "| ", (int)node->depth, ">>>>>>>>",
		(unsigned long long)node->count);
	fprintf(stream, "*%s", regions->regions[node->region].name);
	if (node->open)
		fprintf(stream, "+%llu", (unsigned long long)node->open);
	fprintf(stream, "=%g[%g,%g]", wall->sum / MS, wall->minimum / MS, wall->maximum / MS);
	for (uint32_t i = node->first_child; i != MODEL_ENTRY_INDEX_NONE;
	     i = regions->nodes[i].next_sibling)
		write_node(session, i, stream);
}

/* "| 2*A=6[2,4] > 3*B=1[…]": two calls of A took 6 ms, the shortest 2 and the longest 4. */
static void expect_nodes(struct session *session, const char *expected)
{
	size_t size;
	char *text;
	FILE *stream = open_memstream(&text, &size);

	for (uint32_t i = 0; i < session_get_regions(session)->node_count; i++) {
		const struct model_region_node *node = &session_get_regions(session)->nodes[i];

		assert_true(node->parent == MODEL_ENTRY_INDEX_NONE || node->parent < i);
		if (node->parent == MODEL_ENTRY_INDEX_NONE)
			write_node(session, i, stream);
	}
	fclose(stream);
	assert_string_equal(size ? text + 1 : text, expected);
	free(text);
}

/* ---- small recordings ---- */

static const uint64_t start = FIXTURE_START;

static void open_small(struct spool_fixture *fixture, const char *directory)
{
	static const char *const names[] = {"A", "B", "C", "D"};

	fixture_open_in(fixture, directory, 100, 0);
	fixture_clock(fixture, start);
	fixture_thread_start(fixture, start, 0, 100, 0, "", 0);
	for (uint64_t i = 0; i < 4; i++)
		fixture_region(fixture, A + i, "test", names[i]);
	fixture->header.end_ticks = start + 20 * MS;
	fixture_end_chunk(fixture);
}

static void begin_at(struct spool_fixture *fixture, uint64_t ms, uint64_t region)
{
	fixture_begin(fixture, start + ms * MS, region);
}

static void end_at(struct spool_fixture *fixture, uint64_t ms)
{
	fixture_end(fixture, start + ms * MS);
}

static void span_at(struct spool_fixture *fixture, uint64_t ms, const struct fixture_open *open,
		    size_t count)
{
	fixture_end_chunk(fixture);
	fixture_region_span(fixture, 0, 100, start + ms * MS, open, count);
}

static void two_threads_and_recursion(void **state)
{
	struct session *session;

	fixture_write_regions(*state);
	session = test_session(*state, NULL);
	expect_events(session, "+main@0 +compute@1 what=\"outer\" +compute@2 -compute@3 -compute@4 "
			       "=pthread_mutex_lock@6/1 +compute@7 -compute@9 -main@10 +late@11 "
			       "-late@12~ | +task@1 -task@3 +task@4 =pthread_mutex_lock@5.5/0.5 "
			       "-task@8");
	expect_nodes(session, "|  1*main=10[10,10] > 2*compute=5[2,3] >> 1*compute=1[1,1] > "
			      "1*pthread_mutex_lock=1[1,1] |  0*late+1=1[0,0] |  2*task=6[2,4] > "
			      "1*pthread_mutex_lock=0.5[0.5,0.5]");
	assert_int_equal(session_get_regions(session)->events, 15);
	assert_int_equal(session_get_regions(session)->unbalanced_region_count, 0);
	assert_false(session_get_regions(session)->was_aggregated_in_process);
	assert_int_equal(session_get_regions(session)->component_count, 2);
	assert_string_equal(session_get_regions(session)->components[0].name, "wall_clock");
	assert_string_equal(session_get_regions(session)->components[1].name, "trip_count");
	assert_int_equal(session->processes[0].torn_bytes, 0);
	assert_int_equal(session->processes[0].unknown_records, 0);
	session_close(session);
}

static void every_kind_of_event(void **state)
{
	struct spool_fixture fixture;
	struct session *session;
	double real = 2.5;
	uint64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	open_small(&fixture, *state);
	span_at(&fixture, 0, NULL, 0);
	fixture_mark(&fixture, start + MS, A);
	fixture_value(&fixture, SPOOL_VALUE_SIGNED, "negative", (uint64_t)-7);
	fixture_value(&fixture, SPOOL_VALUE_REAL, "real", bits);
	fixture_text_value(&fixture, "text", "x y");
	fixture_counter(&fixture, start + 2 * MS, B, -1.5);
	fixture_progress(&fixture, start + 3 * MS, SPOOL_PROGRESS_POINT, C);
	fixture_progress(&fixture, start + 4 * MS, SPOOL_PROGRESS_BEGIN, C);
	fixture_progress(&fixture, start + 5 * MS, SPOOL_PROGRESS_END, C);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_events(session, "!A@1 negative=-7 real=2.5 text=\"x y\" #B@2/-1.5 *C@3/0 *C@4/1 "
			       "*C@5/2");
	assert_int_equal(session_get_regions(session)->node_count, 0);
	session_close(session);
}

/* A writer may run out of room between an event and its values. */
static void values_in_the_next_chunk(void **state)
{
	static const struct fixture_open open[] = {{A, MS}};
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	span_at(&fixture, 0, NULL, 0);
	begin_at(&fixture, 1, A);
	span_at(&fixture, 2, open, 1);
	fixture_value(&fixture, SPOOL_VALUE_UNSIGNED, "first", 1);
	end_at(&fixture, 3);
	span_at(&fixture, 3, NULL, 0);
	fixture_value(&fixture, SPOOL_VALUE_UNSIGNED, "second", 2);
	begin_at(&fixture, 4, A);
	begin_at(&fixture, 5, B);
	fixture_end_other(&fixture, start + 6 * MS, A, 0);
	span_at(&fixture, 7, &(struct fixture_open){B, 2 * MS}, 1);
	fixture_value(&fixture, SPOOL_VALUE_UNSIGNED, "third", 3);
	end_at(&fixture, 8);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_events(session, "+A@1 first=1 -A@3 second=2 +A@4 +B@5 -A@6 third=3 -B@8");
	session_close(session);
}

static void ends_that_are_not_the_innermost(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	span_at(&fixture, 0, NULL, 0);
	begin_at(&fixture, 1, A);
	begin_at(&fixture, 2, B);
	begin_at(&fixture, 3, C);
	fixture_end_other(&fixture, start + 4 * MS, A, 0); /* it alone */
	begin_at(&fixture, 5, D);
	fixture_end_other(&fixture, start + 6 * MS, B, 1); /* with C and D */
	end_at(&fixture, 7);                               /* of nothing */
	fixture_end_other(&fixture, start + 8 * MS, A, 1); /* not open */
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_events(session, "+A@1 +B@2 +C@3 -A@4 +D@5 -D@6~ -C@6~ -B@6");
	expect_nodes(session, "|  1*A=3[3,3] > 1*B=4[4,4] >> 1*C=3[3,3] >>> 1*D=1[1,1]");
	assert_int_equal(session_get_regions(session)->unbalanced_region_count, 4);
	session_close(session);
}

static void open_before_the_process_and_after_it(void **state)
{
	/* A began 5 ms before this process was forked, B in it. */
	static const struct fixture_open open[] = {{A, 6 * MS}, {B, MS / 2}};
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	span_at(&fixture, 1, open, 2);
	end_at(&fixture, 2);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_events(session, "+A@0~ +B@0.5~ -B@2 -A@20~");
	expect_nodes(session, "|  0*A+1=20[0,0] > 1*B=1.5[1.5,1.5]");
	session_close(session);
}

/* Chunks overwritten in ring mode: A goes on, B and C of before ended unseen, another B began. */
static void holes(void **state)
{
	static const struct fixture_open open[] = {{A, 9 * MS}, {B, 4 * MS}};
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	span_at(&fixture, 0, NULL, 0);
	begin_at(&fixture, 1, A);
	begin_at(&fixture, 2, B);
	begin_at(&fixture, 3, C);
	span_at(&fixture, 10, open, 2);
	end_at(&fixture, 11);
	end_at(&fixture, 12);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_events(session, "+A@1 +B@2 +C@3 -C@3~ -B@3~ +B@6~ -B@11 -A@12");
	expect_nodes(session, "|  1*A=11[11,11] > 2*B=6[1,5] >> 1*C=0[0,0]");
	assert_int_equal(session_get_regions(session)->unbalanced_region_count, 0);
	session_close(session);
}

/* Of deep stacks a span tells only the innermost regions, and how many it leaves out. */
static void deep_stacks(void **state)
{
	static const struct fixture_open open[] = {{0, 2}, {C, 2 * MS}};
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	span_at(&fixture, 0, NULL, 0);
	begin_at(&fixture, 1, A);
	begin_at(&fixture, 2, B);
	begin_at(&fixture, 3, C);
	span_at(&fixture, 5, open, 2);
	end_at(&fixture, 6);
	end_at(&fixture, 7);
	end_at(&fixture, 8);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_events(session, "+A@1 +B@2 +C@3 -C@6 -B@7 -A@8");
	session_close(session);
}

/* What cannot be decoded costs the rest of its span; the next one goes on. */
static void damage(void **state)
{
	static const struct fixture_open open[] = {{A, 4 * MS}};
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	span_at(&fixture, 0, NULL, 0);
	begin_at(&fixture, 1, A);
	fixture_record(&fixture, SPOOL_RECORD_REGION_BEGIN, "\xff", 1);
	begin_at(&fixture, 2, B);
	span_at(&fixture, 5, open, 1);
	end_at(&fixture, 6);
	fixture_end_chunk(&fixture);
	fixture_begin(&fixture, start + 7 * MS, C); /* in no span */
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_events(session, "+A@1 -A@6");
	assert_true(session->processes[0].torn_bytes > 0);
	session_close(session);
}

static void regions_without_a_definition(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	span_at(&fixture, 0, NULL, 0);
	begin_at(&fixture, 1, 77);
	begin_at(&fixture, 2, UINT64_C(1) << 40);
	fixture_end_chunk(&fixture);
	fixture_region(&fixture, UINT64_C(1) << 40, "test", "late name");
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_events(session, "+[region 77]@1 +late name@2 -late name@20~ -[region 77]@20~");
	session_close(session);
}

/* ---- filters ---- */

static void window(void **state)
{
	struct session_options options = {.symbol_cache_directory = "",
					  .skip_symbolizing = true,
					  .from_ns = 2 * MS + MS / 2,
					  .to_ns = 8 * MS};
	struct session *session;

	fixture_write_regions(*state);
	session = test_session(*state, &options);
	expect_events(session,
		      "+main@2.5~ +compute@2.5~ +compute@2.5~ -compute@3 -compute@4 "
		      "=pthread_mutex_lock@6/1 +compute@7 -compute@8~ -main@8~ | +task@2.5~ "
		      "-task@3 +task@4 =pthread_mutex_lock@5.5/0.5 -task@8~");
	expect_nodes(session, "|  0*main+1=5.5[0,0] > 1*compute+1=2.5[1.5,1.5] >> "
			      "1*compute=0.5[0.5,0.5] > 1*pthread_mutex_lock=1[1,1] |  "
			      "1*task+1=4.5[0.5,0.5] > 1*pthread_mutex_lock=0.5[0.5,0.5]");
	session_close(session);
	options.from_ns = 10 * MS + 1;
	options.to_ns = 0;
	session = test_session(*state, &options);
	expect_events(session, "+late@11 -late@12~");
	session_close(session);
	options.from_ns = 11 * MS + 1;
	session = test_session(*state, &options);
	expect_events(session, "+late@11~ -late@12~");
	session_close(session);
	options.from_ns = 0;
	options.to_ns = MS;
	session = test_session(*state, &options);
	expect_events(session, "+main@0 -main@1~");
	session_close(session);
}

static void one_thread(void **state)
{
	struct session_options options = {
		.symbol_cache_directory = "", .skip_symbolizing = true, .filter_thread_tid = 101};
	struct session *session;

	fixture_write_regions(*state);
	session = test_session(*state, &options);
	expect_events(session, "+task@1 -task@3 +task@4 =pthread_mutex_lock@5.5/0.5 -task@8");
	expect_nodes(session, "|  2*task=6[2,4] > 1*pthread_mutex_lock=0.5[0.5,0.5]");
	assert_int_equal(session_get_regions(session)->events, 5);
	session_close(session);
}

/* ---- profiles that processes kept themselves ---- */

static const struct fixture_component components[] = {
	{"wall_clock", "ns", SPOOL_COMPONENT_PHASE, 0},
	{"cpu_util", "%", SPOOL_COMPONENT_RATIO, 2 << 8 | 0},
	{"thread_cpu_clock", "ns", SPOOL_COMPONENT_PHASE, 1},
	{"trip_count", "count", SPOOL_COMPONENT_COUNT, 1},
	{"page_rss", "bytes", SPOOL_COMPONENT_LEVEL, 1},
};

#define NODE(region_, parent_, count_, open_) .node = {region_, parent_, count_, open_}
#define VALUE(sum_, minimum_, maximum_, square_)                                                   \
	{                                                                                          \
		sum_ *MS, minimum_ *MS, maximum_ *MS, square_ *MS *MS, 0                           \
	}

/* In two parts, the later first; squares of more than 64 bits; a part of another thread. */
static void write_profile(const char *directory)
{
	static const struct fixture_node first[] = {
		{NODE(0, 0, 0, 0)},
		{NODE(A, 0, 2, 1), .values = {VALUE(10, 3, 7, 58),
					      VALUE(5, 1, 4, 17),
					      {2, 1, 1, 2, 0},
					      {8192, 4096, 4096, 2 << 24, 0}}},
	};
	static const struct fixture_node second[] = {
		{NODE(B, 1, 1, 0), .values = {{.sum = UINT64_C(10000000000),
					       .minimum = UINT64_C(10000000000),
					       .maximum = UINT64_C(10000000000),
					       .square_low = UINT64_C(7766279631452241920),
					       .square_high = 5}}},
		{NODE(0, 1, 5, 0), .values = {VALUE(1, 0, 1, 1)}},
		{NODE(A, 2, 0, 1)},
	};
	static const struct fixture_node other[] = {
		{NODE(0, 0, 0, 0)},
		{NODE(C, 0, 4, 0), .values = {VALUE(4, 1, 1, 4)}},
	};
	struct spool_fixture fixture;

	open_small(&fixture, directory);
	fixture_components(&fixture, components, 5);
	fixture_rank(&fixture, 3, 8, "MPI_COMM_WORLD");
	fixture_profile(&fixture,
			&(struct spool_profile_part){
				.tree = 1, .tid = 100, .first_node = 2, .node_count = 3},
			second, 4);
	fixture_profile(&fixture,
			&(struct spool_profile_part){
				.tree = 2, .internal_id = 1, .tid = 101, .node_count = 2},
			other, 4);
	fixture_profile(&fixture,
			&(struct spool_profile_part){.tree = 1, .tid = 100, .node_count = 2}, first,
			4);
	/* The trace lacks most of it. */
	span_at(&fixture, 0, NULL, 0);
	begin_at(&fixture, 1, A);
	fixture.header.losses[SPOOL_LOSS_REGION_UNBALANCED] = 9;
	fixture_close(&fixture);
}

static void a_profile_of_its_own(void **state)
{
	const struct model_regions *regions;
	const struct model_component_statistics *of_a;
	struct session *session;

	write_profile(*state);
	session = test_session(*state, NULL);
	regions = session_get_regions(session);
	expect_nodes(session, "|  2*A+1=10[3,7] > 1*B=10000[10000,10000] >> 0*A+1=0[0,0] > "
			      "5*(more)=1[0,1] |  4*C=4[1,1]");
	assert_true(regions->was_aggregated_in_process);
	assert_int_equal(regions->unbalanced_region_count, 9);
	assert_int_equal(regions->component_count, 5);
	of_a = regions->statistics;
	assert_true(of_a[0].sum_of_squares == 58e12);
	assert_true(of_a[1].sum == 50); /* percent */
	assert_true(of_a[2].sum == 5e6 && of_a[2].maximum == 4e6);
	assert_true(of_a[3].sum == 2 && of_a[3].minimum == 1 && of_a[3].maximum == 1);
	assert_true(of_a[4].sum == 8192);
	assert_true(regions->statistics[5].sum_of_squares == 1e20);
	assert_int_equal(session->thread_count, 2);
	assert_int_equal(session->threads[regions->nodes[4].thread].tid, 101);
	assert_int_equal(session->processes[0].rank, 3);
	assert_int_equal(session->processes[0].rank_count, 8);
	assert_string_equal(session->processes[0].rank_source, "MPI_COMM_WORLD");
	assert_int_equal(session->processes[0].torn_bytes, 0);
	session_close(session);
}

/* The process's own sums are of the whole run: a part of it comes from the trace. */
static void no_part_of_a_profile(void **state)
{
	struct session_options options = {
		.symbol_cache_directory = "", .skip_symbolizing = true, .from_ns = 2 * MS};
	struct session *session;

	write_profile(*state);
	session = test_session(*state, &options);
	expect_nodes(session, "|  0*A+1=18[0,0]");
	assert_false(session_get_regions(session)->was_aggregated_in_process);
	session_close(session);
}

static void profiles_that_make_no_sense(void **state)
{
	static const struct fixture_node good[] = {{NODE(0, 0, 0, 0)}, {NODE(A, 0, 1, 0)}};
	static const struct fixture_node bad[] = {{NODE(0, 0, 0, 0)}, {NODE(A, 1, 1, 0)}};
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	fixture_components(&fixture, components, 5);
	fixture_profile(&fixture, &(struct spool_profile_part){.tree = 1, .node_count = 2}, bad, 4);
	fixture_profile(&fixture, &(struct spool_profile_part){.tree = 2, .node_count = 2}, good,
			1);
	fixture_profile(&fixture,
			&(struct spool_profile_part){.tree = 2, .first_node = 9, .node_count = 2},
			good, 1);
	fixture_record(&fixture, SPOOL_RECORD_PROFILE, "short", 5);
	fixture_end_chunk(&fixture);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_nodes(session, "|  1*A=0[0,0]");
	assert_true(session->processes[0].torn_bytes > 0);
	session_close(session);
}

/* ---- several processes ---- */

static void a_forked_child(void **state)
{
	static const struct fixture_open open[] = {{A, 3 * MS}};
	struct spool_fixture parent, child;
	struct session *session;

	open_small(&parent, *state);
	span_at(&parent, 0, NULL, 0);
	begin_at(&parent, 1, A);
	end_at(&parent, 10);
	fixture_close(&parent);
	fixture_open_in(&child, *state, 101, 0);
	child.header.start_ticks = child.header.start_monotonic_ns = start + 4 * MS;
	child.header.start_boottime_ns = child.header.start_ticks + FIXTURE_BOOT;
	child.header.end_ticks = start + 9 * MS;
	fixture_thread_start(&child, start + 4 * MS, 0, 101, 0, "", 0);
	fixture_region(&child, A, "test", "A");
	fixture_end_chunk(&child);
	fixture_region_span(&child, 0, 101, start + 4 * MS, open, 1);
	fixture_begin(&child, start + 5 * MS, A);
	fixture_end(&child, start + 6 * MS);
	fixture_end(&child, start + 7 * MS);
	fixture_close(&child);
	session = test_session(*state, NULL);
	expect_events(session, "+A@1 -A@10 | +A@4~ +A@5 -A@6 -A@7");
	expect_nodes(session, "|  1*A=9[9,9] |  1*A=3[3,3] > 1*A=1[1,1]");
	assert_ptr_equal(session_get_regions(session)->regions[0].name,
			 session_get_regions(session)
				 ->regions[session_get_regions(session)->nodes[1].region]
				 .name);
	session_close(session);
}

static void functions_have_names(void **state)
{
	struct spool_fixture fixture;
	struct session *session;
	const struct model_region *regions;

	open_small(&fixture, *state);
	fixture_module(&fixture, start, 1, 0x400000, 0x500000, 0x1000, "/nowhere/program");
	fixture_region_function(&fixture, 10, "host", 0x401230);
	fixture_region_function(&fixture, 11, "host", 0x401440);
	fixture_region_function(&fixture, 12, "host", 0x999000);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	regions = session_get_regions(session)->regions + 4;
	assert_int_equal(session_get_regions(session)->region_count, 7);
	assert_int_equal(regions[0].kind, SPOOL_REGION_FUNCTION);
	assert_string_equal(regions[0].name, "[program+0x2230]");
	assert_string_equal(regions[1].name, "[program+0x2440]");
	assert_string_equal(regions[2].name, "[0x999000]");
	assert_string_equal(regions[2].category, "host");
	assert_int_equal(session->node_count, 0);
	session_close(session);
}

int main(void)
{
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)
	const struct CMUnitTest tests[] = {
		TEST(two_threads_and_recursion),
		TEST(every_kind_of_event),
		TEST(values_in_the_next_chunk),
		TEST(ends_that_are_not_the_innermost),
		TEST(open_before_the_process_and_after_it),
		TEST(holes),
		TEST(deep_stacks),
		TEST(damage),
		TEST(regions_without_a_definition),
		TEST(window),
		TEST(one_thread),
		TEST(a_profile_of_its_own),
		TEST(no_part_of_a_profile),
		TEST(profiles_that_make_no_sense),
		TEST(a_forked_child),
		TEST(functions_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

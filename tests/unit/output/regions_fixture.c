/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "regions_fixture.h"

#include <stdio.h>

#include "common/array.h"
#include "session_fixture.h"

#define US     UINT64_C(1000)
#define MS     UINT64_C(1000000)
#define AT(ms) (FIXTURE_START_NS + (ms)*MS)

enum {
	LOOP,
	COMPUTE,
	REQUEST,
	HOSTILE,
	FORK,
	VFORK,
	LOCK,
	CHECKPOINT,
	QUEUE,
	ITERATION,
	CHILD_WORK,
	REGION_COUNT,
	FUNCTIONS = 300,
};

static struct model_region regions[REGION_COUNT + FUNCTIONS] = {
	[LOOP] = {.process = 1,
		  .category = "host",
		  .name = "main_loop(int)",
		  .kind = SPOOL_REGION_FUNCTION,
		  .address = 0x401100,
		  .file = "/src/work.c",
		  .line = 5},
	[COMPUTE] = {.process = 1, .category = "user", .name = "compute"},
	[REQUEST] = {.process = 1, .category = "user", .name = "request"},
	[HOSTILE] = {.process = 1, .category = "my \"own\"", .name = "\xff;<step>"},
	[FORK] = {.process = 1, .category = "process", .name = "fork"},
	[VFORK] = {.process = 1, .category = "process", .name = "vfork"},
	[LOCK] = {.process = 1, .category = "pthread", .name = "pthread_mutex_lock"},
	[CHECKPOINT] = {.process = 1, .category = "user", .name = "checkpoint"},
	[QUEUE] = {.process = 1, .category = "user", .name = "Threads"},
	[ITERATION] = {.process = 1, .category = "user", .name = "iteration"},
	[CHILD_WORK] = {.process = 2, .category = "user", .name = "child work"},
};

static const struct model_event_value all_types[] = {
	{.name = "signed", .type = SPOOL_VALUE_SIGNED, .number = -3},
	{.name = "unsigned", .type = SPOOL_VALUE_UNSIGNED, .number = INT64_MIN},
	{.name = "address", .type = SPOOL_VALUE_ADDRESS, .number = 0x7fffdeadbeef},
	{.name = "real", .type = SPOOL_VALUE_REAL, .real_number = 0.5},
	{.name = "text", .type = SPOOL_VALUE_TEXT, .text = "two\nlines \xff"},
};
static const struct model_event_value lock_address[] = {
	{.name = "address", .type = SPOOL_VALUE_ADDRESS, .number = 0x5000}};
static const struct model_event_value child_pid[] = {
	{.name = "pid", .type = SPOOL_VALUE_SIGNED, .number = 2000}};

static const struct model_event_value own_pid[] = {
	{.name = "pid", .type = SPOOL_VALUE_SIGNED, .number = 1000}};

#define MAIN(kind_, region_, ms_)                                                                  \
	.kind = MODEL_EVENT_##kind_, .process = 1, .thread = 1, .region = region_,                 \
	.time_ns = AT(ms_)
#define POOL(kind_, region_, ms_)                                                                  \
	.kind = MODEL_EVENT_##kind_, .process = 1, .thread = 2, .region = region_,                 \
	.time_ns = AT(ms_)
#define CHILD(kind_, region_, ms_)                                                                 \
	.kind = MODEL_EVENT_##kind_, .process = 2, .thread = 3, .region = region_,                 \
	.time_ns = AT(ms_)

static const struct model_region_event main_events[] = {
	{MAIN(REGION_BEGIN, LOOP, 5), .is_implied = true},
	{MAIN(REGION_BEGIN, REQUEST, 10)},
	{MAIN(REGION_BEGIN, COMPUTE, 11), .values = all_types, .value_count = 5},
	{MAIN(MARK, CHECKPOINT, 12), .values = lock_address, .value_count = 1},
	{MAIN(REGION_END, REQUEST, 13)}, /* while "compute", which began in it, goes on */
	{MAIN(REGION_END, COMPUTE, 15), .values = lock_address, .value_count = 1},
	{MAIN(REGION_BEGIN, REQUEST, 16)},
	{MAIN(REGION_END, REQUEST, 17)},
	{MAIN(MARK, VFORK, 17), .values = own_pid, .value_count = 1},
	{MAIN(REGION_BEGIN, FORK, 18)},
	{MAIN(REGION_END, FORK, 22), .values = child_pid, .value_count = 1},
	{MAIN(REGION_COMPLETE, LOCK, 30), .duration_ns = 3 * MS, .values = lock_address,
	 .value_count = 1},
	{MAIN(REGION_COMPLETE, LOCK, 31), .duration_ns = 2 * MS}, /* begins too early */
	{MAIN(COUNTER, QUEUE, 31), .counter = 5},
	{MAIN(COUNTER, QUEUE, 32), .counter = -0.25},
	{MAIN(PROGRESS, ITERATION, 33)},
	{MAIN(PROGRESS, ITERATION, 34)},
	{MAIN(PROGRESS, ITERATION, 35), .progress = SPOOL_PROGRESS_BEGIN},
	{MAIN(PROGRESS, ITERATION, 36), .progress = SPOOL_PROGRESS_END},
	{MAIN(REGION_END, LOOP, 190), .is_implied = true},
};

static const struct model_region_event pool_events[] = {
	{POOL(REGION_COMPLETE, LOCK, 40), .duration_ns = 1 * MS},
	{POOL(REGION_BEGIN, REQUEST, 40)},
	{POOL(REGION_BEGIN, REQUEST, 40)},
	{POOL(REGION_END, REQUEST, 41)},
	{POOL(REGION_END, REQUEST, 41)},
	{POOL(COUNTER, QUEUE, 45), .counter = 7},
	{POOL(PROGRESS, ITERATION, 46)},
};

static const struct model_region_event child_events[] = {
	{CHILD(REGION_BEGIN, CHILD_WORK, 25)},
	{CHILD(REGION_END, CHILD_WORK, 30)},
};

static struct model_region_component components[] = {
	{.name = "trip_count", .unit = "count", .kind = SPOOL_COMPONENT_COUNT},
	{.name = "wall_clock", .unit = "ns", .kind = SPOOL_COMPONENT_PHASE}};
/* A node's only child took longer than it did so far, because the node is still open. */
static struct model_region_node nodes[] = {
	{MODEL_ENTRY_INDEX_NONE, LOOP, 1, 1, 0, 1, MODEL_ENTRY_INDEX_NONE, 0, 1, 0},
	{0, COMPUTE, 1, 1, 1, 2, 3, 0, 3, 0},
	{1, HOSTILE, 1, 1, 2, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE, 0, 9, 0},
	{0, FORK, 1, 1, 1, 4, MODEL_ENTRY_INDEX_NONE, 0, 0, 1},
	{3, LOCK, 1, 1, 2, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE, 0, 1, 0},
	{MODEL_ENTRY_INDEX_NONE, LOCK, 1, 2, 0, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE, 0,
	 1, 0},
};
static struct model_component_statistics statistics[][2] = {
	{{.sum = 1}, {.sum = 100e6}}, {{.sum = 3}, {.sum = 40e6}}, {{.sum = 9}, {.sum = 10e6}},
	{{.sum = 0}, {.sum = 0}},     {{.sum = 1}, {.sum = 5e6}},  {{.sum = 1}, {.sum = 7e6}},
};

static uint64_t repeated;
static bool is_empty = true;

struct model_regions *fixture_no_regions(void)
{
	static struct model_regions none;

	is_empty = true;
	return &none;
}

static void name_functions(void)
{
	static char names[FUNCTIONS][32];

	for (unsigned i = 0; i < FUNCTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "module::function_%u(int)", i);
		regions[REGION_COUNT + i] = (struct model_region){.process = 1,
								  .category = "host",
								  .name = names[i],
								  .file = "/src/module.cc",
								  .line = i + 1};
	}
}

void fixture_add_regions(struct session *session, uint64_t repeat)
{
	static struct model_regions all = {.regions = regions,
					   .components = components,
					   .nodes = nodes,
					   .statistics = statistics[0],
					   .region_count = REGION_COUNT + FUNCTIONS,
					   .component_count = 2,
					   .node_count = ARRAY_SIZE(nodes)};

	repeated = repeat;
	is_empty = false;
	name_functions();
	session_set_kind_data(session, REGIONS_DATA_KIND_NAME, &all);
}

static int send(const struct model_region_event *events, size_t count,
		int (*each)(const struct model_region_event *, void *), void *context)
{
	int result = 0;

	for (size_t i = 0; i < count && result == 0; i++)
		result = each(&events[i], context);
	return result;
}

/* As deep as this goes, not all can be drawn. */
static int recurse(int (*each)(const struct model_region_event *, void *), void *context)
{
	int result = 0;

	for (unsigned i = 0; i < 2 * FIXTURE_RECURSION && result == 0; i++) {
		struct model_region_event event = {POOL(REGION_BEGIN, HOSTILE, 50)};
		event.kind =
			i < FIXTURE_RECURSION ? MODEL_EVENT_REGION_BEGIN : MODEL_EVENT_REGION_END;
		event.time_ns += i * US;
		result = each(&event, context);
	}
	return result;
}

static uint64_t random_number(uint64_t *state) /* xorshift64 */
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Functions that call each other at random, up to 20 deep, 60 to 1,500 ns between events. */
static int repeat_by(uint32_t thread, uint64_t events,
		     int (*each)(const struct model_region_event *, void *), void *context)
{
	uint32_t stack[20], depth = 0;
	uint64_t state = 88172645463325252u + thread;
	struct model_region_event event = {.process = 1, .thread = thread, .time_ns = AT(1)};
	int result = 0;

	for (uint64_t left = events; left > 0 && result == 0; left--) {
		uint64_t number = random_number(&state);
		bool is_end = depth == left || depth == 20 || (depth > 0 && number % 2 == 0);

		event.time_ns += 60 + number / 2 % 1440;
		event.kind = is_end ? MODEL_EVENT_REGION_END : MODEL_EVENT_REGION_BEGIN;
		if (!is_end)
			stack[depth++] = REGION_COUNT + (uint32_t)(number / 4096) % FUNCTIONS;
		event.region = is_end ? stack[--depth] : stack[depth - 1];
		result = each(&event, context);
	}
	return result;
}

int session_visit_region_events(struct session *session,
				int (*each)(const struct model_region_event *, void *),
				void *context, struct problem *problem)
{
	(void)session;
	(void)problem;
	if (is_empty)
		return 0;
	if (repeated != 0) {
		int error = repeat_by(1, repeated - repeated / 2, each, context);
		return error != 0 ? error : repeat_by(2, repeated / 2, each, context);
	}
	int result = send(main_events, ARRAY_SIZE(main_events), each, context);
	if (result == 0)
		result = send(pool_events, ARRAY_SIZE(pool_events), each, context);
	if (result == 0)
		result = recurse(each, context);
	if (result == 0)
		result = send(child_events, ARRAY_SIZE(child_events), each, context);
	return result;
}

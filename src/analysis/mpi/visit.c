/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See visit.h. Calls of MPI do not nest: what MPI calls inside a call is not recorded.
 */
#include "analysis/mpi/visit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/regions/walk.h"
#include "common/array.h"
#include "common/fold_hash.h"
#include "common/region_categories.h"

#define TEXT_SIZE 1100

/* Numbers that values give. */
enum value_index {
	VALUE_PEER,
	VALUE_TAG,
	VALUE_SOURCE,
	VALUE_SOURCE_TAG,
	VALUE_WORLD_PEER,
	VALUE_WORLD_SOURCE,
	VALUE_BYTES,
	VALUE_RECEIVED,
	VALUE_ROOM,
	VALUE_SIZE,
	VALUE_CONTEXT,
	VALUE_REQUEST,
	VALUE_CANCELLED,
	VALUE_ROOT,
	VALUE_SITE,
	VALUE_COUNT
};

static const char *const value_names[VALUE_COUNT] = {
	[VALUE_PEER] = "peer",
	[VALUE_TAG] = "tag",
	[VALUE_SOURCE] = "source",
	[VALUE_SOURCE_TAG] = "source tag",
	[VALUE_WORLD_PEER] = "world peer",
	[VALUE_WORLD_SOURCE] = "world source",
	[VALUE_BYTES] = "bytes",
	[VALUE_RECEIVED] = "received",
	[VALUE_ROOM] = "room",
	[VALUE_SIZE] = "size",
	[VALUE_CONTEXT] = "context",
	[VALUE_REQUEST] = "request",
	[VALUE_CANCELLED] = "cancelled",
	[VALUE_ROOT] = "root",
	[VALUE_SITE] = "site",
};

struct event_values {
	int64_t numbers[VALUE_COUNT];
	bool is_given[VALUE_COUNT];
	char communicator[TEXT_SIZE], world_ranks[TEXT_SIZE];
};

struct mpi_visit {
	struct session *session;
	int (*each)(const struct mpi_event *event, void *context);
	void *context;
	uint32_t thread;
	uint32_t *open; /* regions, outermost first */
	size_t depth, capacity;
	bool in_call;
	size_t call_depth;
	struct mpi_event call;
	struct event_values values; /* of the call so far */
};

/* ---- values ---- */

static void take_text(char *to, const char *text)
{
	size_t length = strlen(text);

	if (length >= TEXT_SIZE)
		length = TEXT_SIZE - 1;
	memcpy(to, text, length);
	to[length] = 0;
}

static void take_values(struct event_values *values, const struct model_region_event *event)
{
	for (uint32_t i = 0; i < event->value_count; i++) {
		const struct model_event_value *value = &event->values[i];

		if (value->type == SPOOL_VALUE_TEXT) {
			if (!strcmp(value->name, "communicator"))
				take_text(values->communicator, value->text);
			else if (!strcmp(value->name, "world ranks"))
				take_text(values->world_ranks, value->text);
			continue;
		}
		for (unsigned k = 0; k < VALUE_COUNT; k++) {
			if (strcmp(value->name, value_names[k]) != 0)
				continue;
			values->numbers[k] = value->number;
			values->is_given[k] = true;
			break;
		}
	}
}

static void clear_values(struct event_values *values)
{
	memset(values->is_given, 0, sizeof(values->is_given));
	values->communicator[0] = values->world_ranks[0] = 0;
}

static uint64_t get_context(const struct event_values *values)
{
	uint64_t hash = FOLD_HASH_FACTOR;

	if (values->is_given[VALUE_CONTEXT])
		return (uint64_t)values->numbers[VALUE_CONTEXT];
	if (!*values->communicator)
		return MPI_CONTEXT_UNKNOWN;
	if (!strcmp(values->communicator, "MPI_COMM_WORLD"))
		return MPI_CONTEXT_WORLD;
	for (const char *c = values->communicator; *c; c++)
		hash = fold_hash_add(hash, (uint8_t)*c);
	return hash <= MPI_CONTEXT_WORLD ? MPI_CONTEXT_WORLD + 1 : hash;
}

static int64_t get_world_rank(const struct event_values *values, uint64_t context,
			      enum value_index local, enum value_index world)
{
	if (values->is_given[world])
		return values->numbers[world];
	if (context == MPI_CONTEXT_WORLD && values->is_given[local] && values->numbers[local] >= 0)
		return values->numbers[local];
	return MPI_NO_RANK;
}

static struct mpi_message get_message(const struct event_values *values, uint64_t context,
				      bool is_source, enum value_index bytes)
{
	enum value_index tag = is_source ? VALUE_SOURCE_TAG : VALUE_TAG;
	enum value_index peer = is_source ? VALUE_SOURCE : VALUE_PEER;

	return (struct mpi_message){
		/* MPI_PROC_NULL is negative. */
		.is_there = values->is_given[peer] && values->numbers[peer] >= 0,
		.peer = get_world_rank(values, context, peer,
				       is_source ? VALUE_WORLD_SOURCE : VALUE_WORLD_PEER),
		.tag = values->is_given[tag] ? values->numbers[tag] : 0,
		.bytes = values->is_given[bytes] ? (uint64_t)values->numbers[bytes] : 0};
}

/* Of a call: both directions, as far as it has any. A persistent request is prepared only. */
static void set_messages(struct mpi_event *event, const struct event_values *values)
{
	const char *rest = strlen(event->function) > 4 ? event->function + 4 : "";
	bool sends = strstr(rest, "send") || strstr(rest, "Send");

	if (strstr(rest, "_init"))
		return;
	event->posts = values->is_given[VALUE_ROOM] || strstr(rest, "probe");
	if (sends && values->is_given[VALUE_BYTES] && values->is_given[VALUE_PEER])
		event->sent = get_message(values, event->context, false, VALUE_BYTES);
	if (sends && values->is_given[VALUE_RECEIVED])
		event->received = get_message(values, event->context, true, VALUE_RECEIVED);
	else if (!sends && !event->posts && values->is_given[VALUE_BYTES] &&
		 values->is_given[VALUE_PEER])
		event->received = get_message(values, event->context, false, VALUE_BYTES);
	if (event->sent.is_there || event->received.is_there || event->posts)
		return;
	if (values->is_given[VALUE_BYTES])
		event->contributed_bytes = (uint64_t)values->numbers[VALUE_BYTES];
	if (values->is_given[VALUE_RECEIVED])
		event->obtained_bytes = (uint64_t)values->numbers[VALUE_RECEIVED];
}

static void set_from_values(struct mpi_event *event, const struct event_values *values)
{
	event->communicator = values->communicator;
	event->world_ranks = values->world_ranks;
	event->context = get_context(values);
	event->size = values->is_given[VALUE_SIZE] ? (uint64_t)values->numbers[VALUE_SIZE] : 0;
	event->root = values->is_given[VALUE_ROOT] ? values->numbers[VALUE_ROOT] : MPI_NO_RANK;
	event->request =
		values->is_given[VALUE_REQUEST] ? (uint64_t)values->numbers[VALUE_REQUEST] : 0;
	event->is_cancelled = values->is_given[VALUE_CANCELLED];
}

/* ---- events ---- */

static bool is_of_mpi(const struct mpi_visit *visit, uint32_t region)
{
	return !strcmp(session_get_regions(visit->session)->regions[region].category,
		       region_categories[REGION_MPI].name);
}

static void begin_call(struct mpi_visit *visit, const struct model_region_event *event)
{
	visit->in_call = true;
	visit->call_depth = visit->depth;
	clear_values(&visit->values);
	take_values(&visit->values, event);
	visit->call = (struct mpi_event){
		.kind = MPI_EVENT_CALL,
		.process = event->process,
		.thread = event->thread,
		.region = event->region,
		.function = session_get_regions(visit->session)->regions[event->region].name,
		.begin_ns = event->time_ns,
		.root = MPI_NO_RANK};
}

static int end_call(struct mpi_visit *visit, const struct model_region_event *event)
{
	const struct event_values *values = &visit->values;

	visit->in_call = false;
	take_values(&visit->values, event);
	visit->call.end_ns = event->time_ns;
	visit->call.is_open = event->is_implied;
	visit->call.around = visit->open;
	visit->call.around_count = visit->call_depth;
	visit->call.site = values->is_given[VALUE_SITE] ? (uint64_t)values->numbers[VALUE_SITE] : 0;
	set_from_values(&visit->call, values);
	if (!event->is_implied)
		set_messages(&visit->call, values);
	return visit->each(&visit->call, visit->context);
}

struct mark_name {
	const char *name;
	enum mpi_event_kind kind;
};

static const struct mark_name mark_names[] = {
	{"message sent", MPI_EVENT_SENT},         {"receive posted", MPI_EVENT_POSTED},
	{"message received", MPI_EVENT_RECEIVED}, {"send completed", MPI_EVENT_SEND_COMPLETED},
	{"communicator", MPI_EVENT_COMMUNICATOR},
};

static int visit_mark(struct mpi_visit *visit, const struct model_region_event *event)
{
	const char *name = session_get_regions(visit->session)->regions[event->region].name;
	struct event_values values = {.is_given = {false}};
	struct mpi_event mark = {.region = MODEL_ENTRY_INDEX_NONE, .function = ""};
	size_t kind = 0;

	while (kind < ARRAY_SIZE(mark_names) && strcmp(mark_names[kind].name, name) != 0)
		kind++;
	if (kind == ARRAY_SIZE(mark_names))
		return 0;
	if (visit->in_call)
		mark = visit->call;
	else
		mark.begin_ns = event->time_ns;
	take_values(&values, event);
	mark.kind = mark_names[kind].kind;
	mark.process = event->process;
	mark.thread = event->thread;
	mark.end_ns = event->time_ns;
	mark.around = visit->open;
	mark.around_count = visit->in_call ? visit->call_depth : visit->depth;
	mark.site = visit->in_call && visit->values.is_given[VALUE_SITE]
			    ? (uint64_t)visit->values.numbers[VALUE_SITE]
			    : 0;
	set_from_values(&mark, &values);
	if (mark.kind == MPI_EVENT_SENT)
		mark.sent = get_message(&values, mark.context, false, VALUE_BYTES);
	if (mark.kind == MPI_EVENT_RECEIVED && !mark.is_cancelled)
		mark.received = get_message(&values, mark.context, false, VALUE_BYTES);
	return visit->each(&mark, visit->context);
}

static void end_region(struct mpi_visit *visit, uint32_t region)
{
	size_t at = visit->depth;

	while (at > 0 && visit->open[at - 1] != region)
		at--;
	if (!at)
		return;
	memmove(&visit->open[at - 1], &visit->open[at], (visit->depth - at) * sizeof(*visit->open));
	visit->depth--;
}

static int visit_event(struct region_event_walk_state *walk, void *context)
{
	const struct model_region_event *event = &walk->event;
	struct mpi_visit *visit = context;
	int result = 0;

	if (event->thread != visit->thread) {
		visit->thread = event->thread;
		visit->depth = 0;
		visit->in_call = false;
	}
	if (event->kind == MODEL_EVENT_MARK && is_of_mpi(visit, event->region))
		return visit_mark(visit, event);
	if (event->kind == MODEL_EVENT_REGION_BEGIN) {
		if (is_of_mpi(visit, event->region))
			begin_call(visit, event);
		if (array_reserve_one_more((void **)&visit->open, &visit->capacity, visit->depth,
					   sizeof(*visit->open)) < 0)
			return -ENOMEM;
		visit->open[visit->depth++] = event->region;
	}
	if (event->kind == MODEL_EVENT_REGION_END) {
		if (visit->in_call && visit->call.region == event->region)
			result = end_call(visit, event);
		end_region(visit, event->region);
	}
	return result;
}

bool mpi_has_events(const struct session *session)
{
	const struct model_regions *regions = session_get_regions(session);

	for (uint32_t i = 0; i < regions->region_count; i++) {
		if (!strcmp(regions->regions[i].category, region_categories[REGION_MPI].name))
			return true;
	}
	return false;
}

int mpi_visit_events(struct session *session, uint32_t process,
		     int (*each)(const struct mpi_event *event, void *context), void *context,
		     struct problem *problem)
{
	struct mpi_visit *visit = calloc(1, sizeof(*visit));
	struct region_event_walk_state walk = {.visit = visit_event, .context = visit};
	int result;

	if (!visit)
		return -ENOMEM;
	visit->session = session;
	visit->each = each;
	visit->context = context;
	visit->thread = MODEL_ENTRY_INDEX_NONE;
	result = region_walk_process_events(&walk, session, process, problem);
	free(visit->open);
	free(visit);
	return result;
}

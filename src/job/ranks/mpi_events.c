/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a rank sends, receives and enters in MPI, with the times that say who waited for whom
 * (job/results/waits.h).
 *
 * Messages match in the order in which sends began and receives were posted, which need not be the
 * order in which they ended, so all of a rank are gathered first, up to a limit, and numbered.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/id_map.h"
#include "analysis/mpi/mpi.h"
#include "common/fold_hash.h"
#include "job/ranks/private.h"

/* An event, and what puts it into order. */
struct gathered_event {
	struct job_event event;
	uint64_t request; /* of events that began at once: in this order */
};

/* A receive that was posted, by its request. */
struct posted_receive {
	uint64_t begin_ns, context;
	uint32_t name;
};

struct event_gatherer {
	struct rank_collector *collector;
	struct gathered_event *events;
	size_t count, capacity, limit;
	struct posted_receive *posts;
	size_t post_count, post_capacity;
	struct id_map post_by_request, send_by_request; /* -> posts[], events[] */
	struct id_map site_names; /* hash of process, call, site and regions -> name in the job */
	bool *call_receives;      /* by number of the call */
	size_t call_capacity;
	uint32_t calls;           /* so far */
	uint32_t thread, threads; /* of the last event; that have any */
};

#define SITE_TEXT_SIZE 1024

/* ---- sites ---- */

static void format_regions(char *text, size_t size, const struct session *session,
			   const struct mpi_event *event)
{
	size_t length = 0;

	text[0] = 0;
	for (size_t i = 0; i < event->around_count && length < size; i++)
		length += (size_t)snprintf(
			text + length, size - length, "%s > ",
			session_get_regions(session)->regions[event->around[i]].name);
	if (length < size)
		snprintf(text + length, size - length, "%s", event->function);
}

static int add_site_name(struct event_gatherer *gatherer, const struct mpi_event *event,
			 uint32_t *ret)
{
	const struct model_mpi_site *site =
		mpi_find_site(gatherer->collector->session, event->process, event->site);
	char path[SITE_TEXT_SIZE], place[SITE_TEXT_SIZE] = "";
	const char *slash;
	struct job_name name = {JOB_NAME_SITE, path, "", place};

	format_regions(path, sizeof(path), gatherer->collector->session, event);
	if (site && site->function)
		name.group = site->function;
	if (site && site->file && site->line) {
		slash = strrchr(site->file, '/');
		snprintf(place, sizeof(place), "%s:%u", slash ? slash + 1 : site->file, site->line);
	}
	return job_find_or_add_name(gatherer->collector->job, &name, ret);
}

static int find_site_name(struct event_gatherer *gatherer, const struct mpi_event *event,
			  uint32_t *ret)
{
	uint64_t key = fold_hash_add(fold_hash_add(FOLD_HASH_FACTOR, event->process), event->site);
	int error;

	key = fold_hash_add(key, event->region);
	for (size_t i = 0; i < event->around_count; i++)
		key = fold_hash_add(key, event->around[i]);
	*ret = id_map_get(&gatherer->site_names, key);
	if (*ret != ID_MAP_NONE)
		return 0;
	error = add_site_name(gatherer, event, ret);
	return error ? error : id_map_set(&gatherer->site_names, key, *ret);
}

/* ---- messages ---- */

/* Times of different threads need not be in order. */
static void put_times_in_order(struct job_event *event)
{
	if (event->end_ns > JOB_EVENT_TIME_MAX)
		event->end_ns = JOB_EVENT_TIME_MAX;
	if (event->begin_ns > event->end_ns)
		event->begin_ns = event->end_ns;
	if (event->wait_ns > event->end_ns)
		event->wait_ns = event->end_ns;
}

static int gather(struct event_gatherer *gatherer, struct job_event *event, uint64_t request)
{
	struct job_rank *rank = &gatherer->collector->rank;

	rank->events++;
	put_times_in_order(event);
	if (event->context == MPI_CONTEXT_UNKNOWN) {
		rank->unknown_events++;
		return 0;
	}
	if (gatherer->count >= gatherer->limit)
		return 0;
	if (array_reserve_one_more((void **)&gatherer->events, &gatherer->capacity, gatherer->count,
				   sizeof(*gatherer->events)) < 0)
		return -ENOMEM;
	gatherer->events[gatherer->count++] = (struct gathered_event){*event, request};
	return 0;
}

static bool is_test(const struct mpi_event *event)
{
	return !strncmp(event->function, "MPI_Test", 8);
}

static bool is_buffered(const struct mpi_event *event)
{
	return strstr(event->function, "bsend") || strstr(event->function, "Bsend");
}

static int note_receiving_call(struct event_gatherer *gatherer)
{
	while (gatherer->call_capacity <= gatherer->calls) {
		size_t capacity = gatherer->call_capacity ? gatherer->call_capacity * 2 : 1024;
		bool *grown = realloc(gatherer->call_receives, capacity);

		if (!grown)
			return -ENOMEM;
		memset(grown + gatherer->call_capacity, 0, capacity - gatherer->call_capacity);
		gatherer->call_receives = grown;
		gatherer->call_capacity = capacity;
	}
	gatherer->call_receives[gatherer->calls] = true;
	return 0;
}

static struct job_event make_event(const struct event_gatherer *gatherer,
				   const struct mpi_event *event, enum job_event_kind kind,
				   uint32_t name)
{
	return (struct job_event){.kind = kind,
				  .context = event->context,
				  .begin_ns = event->begin_ns,
				  .wait_ns = event->begin_ns,
				  .end_ns = event->end_ns,
				  .rank = gatherer->collector->rank.rank,
				  .peer = JOB_NO_RANK,
				  .begin_name = name,
				  .name = name,
				  .call = gatherer->calls};
}

static void set_peer(struct job_event *to, const struct mpi_message *message)
{
	to->peer = (uint32_t)message->peer;
	to->tag = (int32_t)message->tag;
	if (message->peer < 0)
		to->context = MPI_CONTEXT_UNKNOWN;
}

/* One that goes on after its call has waited for nothing yet. */
static int take_send(struct event_gatherer *gatherer, const struct mpi_event *event, uint32_t name)
{
	struct job_event send = make_event(gatherer, event, JOB_EVENT_SEND, name);
	uint64_t request = event->request;

	set_peer(&send, &event->sent);
	if (request || is_buffered(event))
		send.wait_ns = send.end_ns = send.begin_ns;
	if (request && gatherer->count < gatherer->limit && send.context != MPI_CONTEXT_UNKNOWN &&
	    id_map_set(&gatherer->send_by_request, request, (uint32_t)gatherer->count) < 0)
		return -ENOMEM;
	return gather(gatherer, &send, request);
}

static int take_send_completion(struct event_gatherer *gatherer, const struct mpi_event *event,
				uint32_t name)
{
	uint32_t index = id_map_get(&gatherer->send_by_request, event->request);
	struct job_event *send;

	if (index == ID_MAP_NONE)
		return 0;
	send = &gatherer->events[index].event;
	if (event->is_cancelled)
		send->context = MPI_CONTEXT_UNKNOWN; /* nobody receives it */
	if (is_test(event) || event->begin_ns < send->begin_ns)
		return 0;
	send->wait_ns = event->begin_ns;
	send->end_ns = event->end_ns;
	send->name = name;
	send->call = gatherer->calls;
	put_times_in_order(send);
	return 0;
}

static int take_post(struct event_gatherer *gatherer, const struct mpi_event *event, uint32_t name)
{
	if (!event->request || gatherer->post_count >= gatherer->limit)
		return 0;
	if (array_reserve_one_more((void **)&gatherer->posts, &gatherer->post_capacity,
				   gatherer->post_count, sizeof(*gatherer->posts)) < 0 ||
	    id_map_set(&gatherer->post_by_request, event->request, (uint32_t)gatherer->post_count) <
		    0)
		return -ENOMEM;
	gatherer->posts[gatherer->post_count++] =
		(struct posted_receive){event->begin_ns, event->context, name};
	return 0;
}

static int take_receive(struct event_gatherer *gatherer, const struct mpi_event *event,
			uint32_t name)
{
	struct job_event receive = make_event(gatherer, event, JOB_EVENT_RECEIVE, name);
	uint32_t post = event->request ? id_map_get(&gatherer->post_by_request, event->request)
				       : ID_MAP_NONE;
	int error = note_receiving_call(gatherer);

	if (post != ID_MAP_NONE) {
		receive.begin_ns = gatherer->posts[post].begin_ns;
		receive.begin_name = gatherer->posts[post].name;
		if (receive.context == MPI_CONTEXT_UNKNOWN)
			receive.context = gatherer->posts[post].context;
	} else if (event->request) {
		receive.context = MPI_CONTEXT_UNKNOWN; /* it is not known when it was posted */
	}
	set_peer(&receive, &event->received);
	if (is_test(event))
		receive.wait_ns = receive.end_ns;
	return error ? error : gather(gatherer, &receive, event->request);
}

/* ---- collectives ---- */

/* Number `index` of a list such as "0-3,7"; JOB_NO_RANK: it is not there. */
static uint32_t find_in_list(const char *list, uint64_t index)
{
	while (*list >= '0' && *list <= '9') {
		char *end;
		uint64_t first = strtoull(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoull(end + 1, &end, 10);
		if (index <= last - first)
			return (uint32_t)(first + index);
		index -= last - first + 1;
		list = *end == ',' ? end + 1 : end;
	}
	return JOB_NO_RANK;
}

static uint32_t find_root(const struct session *session, const struct mpi_event *event)
{
	const struct model_mpi *mpi = session_get_mpi(session);

	if (event->root < 0 || event->context == MPI_CONTEXT_WORLD)
		return event->root < 0 ? JOB_NO_RANK : (uint32_t)event->root;
	for (uint32_t i = 0; i < mpi->communicator_count; i++) {
		const struct model_mpi_communicator *it = &mpi->communicators[i];

		if (it->process == event->process && !strcmp(it->name, event->communicator))
			return find_in_list(it->world_ranks, (uint64_t)event->root);
	}
	return JOB_NO_RANK;
}

static int take_collective(struct event_gatherer *gatherer, const struct mpi_event *event,
			   uint32_t name, enum job_event_kind kind)
{
	struct job_event collective = make_event(gatherer, event, kind, name);

	collective.size = (uint32_t)event->size;
	if (kind == JOB_EVENT_ONE_TO_ALL || kind == JOB_EVENT_ALL_TO_ONE)
		collective.peer = find_root(gatherer->collector->session, event);
	return gather(gatherer, &collective, 0);
}

/* ---- one event after the other ---- */

static int take_messages(struct event_gatherer *gatherer, const struct mpi_event *event,
			 uint32_t name)
{
	enum job_event_kind kind;
	int error = 0;

	if (event->kind == MPI_EVENT_CALL && mpi_name_get_collective(event->function, &kind))
		return take_collective(gatherer, event, name, kind);
	if (event->posts || event->kind == MPI_EVENT_POSTED)
		error = take_post(gatherer, event, name);
	if (!error && event->sent.is_there)
		error = take_send(gatherer, event, name);
	else if (!error && event->request && !event->received.is_there && !event->posts &&
		 event->kind != MPI_EVENT_POSTED)
		error = take_send_completion(gatherer, event, name);
	if (!error && event->received.is_there)
		error = take_receive(gatherer, event, name);
	return error;
}

static int take_event(const struct mpi_event *event, void *context)
{
	struct event_gatherer *gatherer = context;
	uint32_t name;
	int error;

	if (event->kind == MPI_EVENT_COMMUNICATOR || event->is_open)
		return 0;
	if (event->thread != gatherer->thread) {
		gatherer->thread = event->thread;
		gatherer->threads++;
	}
	error = find_site_name(gatherer, event, &name);
	if (!error)
		error = take_messages(gatherer, event, name);
	gatherer->calls += event->kind == MPI_EVENT_CALL; /* marks come before the call's end */
	return error;
}

/* ---- order ---- */

static int compare_gathered(const void *left, const void *right)
{
	const struct gathered_event *a = left, *b = right;

	if (a->event.begin_ns != b->event.begin_ns)
		return a->event.begin_ns < b->event.begin_ns ? -1 : 1;
	if (a->request != b->request)
		return a->request < b->request ? -1 : 1;
	return a->event.kind < b->event.kind ? -1 : a->event.kind > b->event.kind;
}

/* Collectives of one communicator are one stream, whatever they are. */
static uint64_t get_stream_key(const struct job_event *event)
{
	bool is_message = event->kind <= JOB_EVENT_RECEIVE;
	uint64_t key = fold_hash_add(FOLD_HASH_FACTOR, event->context);

	if (!is_message)
		return fold_hash_add(key, JOB_EVENT_BARRIER);
	key = fold_hash_add(key, event->kind);
	return fold_hash_add(key, (uint64_t)event->peer << 32 | (uint32_t)event->tag);
}

static int number_and_add_events(struct event_gatherer *gatherer)
{
	struct id_map streams = {.slots = NULL};
	uint32_t limit = job_get_event_limit(gatherer->collector->rank.size);
	int error = 0;

	if (gatherer->count)
		qsort(gatherer->events, gatherer->count, sizeof(*gatherer->events),
		      compare_gathered);
	for (size_t i = 0; !error && i < gatherer->count && i < limit; i++) {
		struct job_event *event = &gatherer->events[i].event;
		uint64_t key = get_stream_key(event);
		uint32_t order = id_map_get(&streams, key);

		if (event->context == MPI_CONTEXT_UNKNOWN) {
			gatherer->collector->rank.unknown_events++;
			continue;
		}
		event->order = order == ID_MAP_NONE ? 0 : order;
		event->is_mixed = event->kind == JOB_EVENT_SEND &&
				  event->call < gatherer->call_capacity &&
				  gatherer->call_receives[event->call];
		error = id_map_set(&streams, key, event->order + 1);
		if (!error)
			error = job_add_event(gatherer->collector->job, event);
	}
	id_map_deinit(&streams);
	return error;
}

static int visit_processes(struct event_gatherer *gatherer)
{
	struct rank_collector *collector = gatherer->collector;
	int error = 0;

	for (uint32_t i = 0; !error && i < collector->session->process_count; i++) {
		struct problem problem;

		if (collector_wants_process(collector, i))
			error = mpi_visit_events(collector->session, i, take_event, gatherer,
						 &problem);
	}
	return error;
}

/* Of several threads, the first ones alone may be there. Requests that were not followed leave
 * holes in the order of messages. */
static bool orders_may_be_wrong(const struct event_gatherer *gatherer)
{
	const struct rank_collector *collector = gatherer->collector;

	for (uint32_t i = 0; i < collector->session->process_count; i++) {
		const struct model_process *process = &collector->session->processes[i];

		if (collector_wants_process(collector, i) &&
		    process->losses[SPOOL_LOSS_MPI_REQUESTS])
			return true;
	}
	return gatherer->threads > 1 && gatherer->count >= gatherer->limit;
}

int collector_add_mpi_events(struct rank_collector *collector)
{
	struct event_gatherer gatherer = {.collector = collector,
					  .limit = (size_t)2 *
						   job_get_event_limit(collector->rank.size),
					  .thread = MODEL_ENTRY_INDEX_NONE};
	int error;

	if (!session_get_mpi(collector->session)->row_count)
		return 0;
	error = visit_processes(&gatherer);
	if (!error && !orders_may_be_wrong(&gatherer))
		error = number_and_add_events(&gatherer);
	free(gatherer.events);
	free(gatherer.posts);
	free(gatherer.call_receives);
	id_map_deinit(&gatherer.post_by_request);
	id_map_deinit(&gatherer.send_by_request);
	id_map_deinit(&gatherer.site_names);
	return error;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See drain.h.
 */
#include "outside/drain.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "outside/records.h"

#define ROUND_MS         100
#define BLOCK_BYTES      (1u << 20)
#define QUEUED_BYTES_MAX (256u << 20)

static struct outside_queue_block *make_block(void)
{
	struct outside_queue_block *block = malloc(sizeof(*block) + BLOCK_BYTES);

	if (!block)
		return NULL;
	*block = (struct outside_queue_block){.room = BLOCK_BYTES};
	return block;
}

/* Room for a record of that size; NULL: out of memory. */
static uint8_t *find_room(struct outside_queue *queue, size_t size)
{
	struct outside_queue_block *last = queue->last, *more;
	uint32_t used = atomic_load_explicit(&last->used, memory_order_relaxed);

	if (last->room - used >= size)
		return last->bytes + used;
	more = make_block();
	if (!more)
		return NULL;
	/* release: the reader finds a block that is made */
	atomic_store_explicit(&last->next, more, memory_order_release);
	queue->last = more;
	return more->bytes;
}

static bool move_record(struct outside_drain *drain, uint32_t index,
			const struct perf_event_header *record)
{
	struct outside_queue *queue = &drain->queues[index];
	uint8_t *to = find_room(queue, record->size);
	uint32_t size;

	if (!to)
		return false;
	size = outside_record_copy_compact(
		record, index / drain->events->cpu_count == OUTSIDE_RING_WAKEUPS, to);
	atomic_fetch_add_explicit(&drain->queued_bytes, size, memory_order_relaxed);
	/* release: the reader finds a record that is whole */
	atomic_fetch_add_explicit(&queue->last->used, size, memory_order_release);
	return true;
}

/* Behind the limit records stay in the rings, where the kernel counts what it cannot write. */
static bool drain_ring(struct outside_drain *drain, uint32_t index)
{
	struct outside_ring *ring = &drain->events->rings[index];
	const struct perf_event_header *record;
	bool any = false;

	if (!ring->page || !ring->wrapped)
		return false;
	outside_ring_update_head(ring);
	while (atomic_load_explicit(&drain->queued_bytes, memory_order_relaxed) <
		       QUEUED_BYTES_MAX &&
	       (record = outside_ring_peek(ring)) && move_record(drain, index, record)) {
		outside_ring_advance(ring, record);
		outside_ring_release(ring);
		any = true;
	}
	return any;
}

static void drain_all(struct outside_drain *drain)
{
	static const uint64_t one = 1;
	uint64_t now = monotonic_ns();
	bool any = false;

	pthread_mutex_lock(&drain->lock);
	for (uint32_t i = 0; i < drain->events->ring_count; i++)
		any |= drain_ring(drain, i);
	pthread_mutex_unlock(&drain->lock);
	/* release: the records before it are in the queues */
	atomic_store_explicit(&drain->complete_ns, now, memory_order_release);
	if (any && write(drain->notify, &one, sizeof(one)) < 0)
		return; /* it is written already */
}

/* A ring whose first task has ended hangs up and is not waited for any more. */
static void wait_for_records(struct outside_drain *drain, struct pollfd *list, bool *has_hung_up)
{
	uint32_t rings = drain->events->ring_count;
	uint64_t unused;
	bool has_rings;

	pthread_mutex_lock(&drain->lock);
	has_rings = drain->events->rings[0].page != NULL;
	for (uint32_t i = 0; i < rings; i++)
		list[i] = (struct pollfd){has_hung_up[i] ? -1 : drain->events->rings[i].owner,
					  POLLIN, 0};
	pthread_mutex_unlock(&drain->lock);
	list[rings] = (struct pollfd){drain->wake, POLLIN, 0};
	poll(list, rings + 1, has_rings ? ROUND_MS : -1);
	if ((list[rings].revents & POLLIN) && read(drain->wake, &unused, sizeof(unused)) < 0)
		return;
	for (uint32_t i = 0; i < rings; i++)
		has_hung_up[i] |= (list[i].revents & (POLLHUP | POLLERR)) != 0;
}

static void *run_drain(void *context)
{
	struct outside_drain *drain = context;
	struct pollfd *list = calloc(drain->events->ring_count + 1, sizeof(*list));
	bool *has_hung_up = calloc(drain->events->ring_count, sizeof(*has_hung_up));

	if (drain->niceness)
		setpriority(PRIO_PROCESS, (id_t)gettid(), drain->niceness);
	while (list && has_hung_up &&
	       !atomic_load_explicit(&drain->is_ending, memory_order_relaxed)) {
		wait_for_records(drain, list, has_hung_up);
		drain_all(drain);
	}
	free(list);
	free(has_hung_up);
	return NULL;
}

int outside_drain_start(struct outside_drain *drain, struct outside_events *events, int niceness)
{
	int error;

	drain->events = events;
	drain->niceness = niceness;
	drain->queues = calloc(events->ring_count, sizeof(*drain->queues));
	for (uint32_t i = 0; drain->queues && i < events->ring_count; i++) {
		drain->queues[i].first = drain->queues[i].last = make_block();
		if (!drain->queues[i].first)
			return -ENOMEM;
	}
	drain->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	drain->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!drain->queues || drain->wake < 0 || drain->notify < 0)
		return -ENOMEM;
	pthread_mutex_init(&drain->lock, NULL);
	error = -pthread_create(&drain->thread, NULL, run_drain, drain);
	drain->is_started = !error;
	return error;
}

void outside_drain_wake(struct outside_drain *drain)
{
	static const uint64_t one = 1;

	if (write(drain->wake, &one, sizeof(one)) < 0)
		return; /* it is awake */
}

void outside_drain_stop(struct outside_drain *drain)
{
	if (!drain->is_started)
		return;
	atomic_store_explicit(&drain->is_ending, true, memory_order_relaxed);
	outside_drain_wake(drain);
	pthread_join(drain->thread, NULL);
	drain->is_started = false;
}

void outside_drain_deinit(struct outside_drain *drain)
{
	outside_drain_stop(drain);
	for (uint32_t i = 0; drain->queues && i < drain->events->ring_count; i++) {
		struct outside_queue_block *block = drain->queues[i].first, *next;

		for (; block; block = next) {
			next = atomic_load_explicit(&block->next, memory_order_relaxed);
			free(block);
		}
	}
	if (drain->queues) {
		close(drain->wake);
		close(drain->notify);
	}
	free(drain->queues);
	drain->queues = NULL;
}

const struct perf_event_header *outside_queue_peek(struct outside_queue *queue)
{
	for (;;) {
		struct outside_queue_block *block = queue->first;
		/* acquire: whatever was written before the next block was linked is seen */
		struct outside_queue_block *next =
			atomic_load_explicit(&block->next, memory_order_acquire);

		/* acquire: the record is whole */
		if (block->read < atomic_load_explicit(&block->used, memory_order_acquire))
			return (const struct perf_event_header *)(const void *)(block->bytes +
										block->read);
		if (!next)
			return NULL;
		queue->first = next;
		free(block);
	}
}

void outside_queue_pass(struct outside_drain *drain, struct outside_queue *queue,
			const struct perf_event_header *record)
{
	uint32_t size = record->size;

	queue->first->read += size;
	atomic_fetch_sub_explicit(&drain->queued_bytes, size, memory_order_relaxed);
}

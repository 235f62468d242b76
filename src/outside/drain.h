/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Empties the kernel's rings in time: a thread that does nothing else moves records to queues in
 * memory, one a ring, while the collector may be busy for longer than a ring lasts (the unwind
 * table of a large program takes a second to compile). A ring has room for the largest stack with
 * every sample; a queue holds what was copied of it.
 *
 * One thread writes queues and one reads them. A block that was read is freed by its reader.
 */
#ifndef KYMO_OUTSIDE_DRAIN_H
#define KYMO_OUTSIDE_DRAIN_H

#include <pthread.h>

#include "outside/events.h"

struct outside_queue_block {
	_Atomic(struct outside_queue_block *) next;
	_Atomic uint32_t used;
	uint32_t read, room;
	uint8_t bytes[];
};

struct outside_queue {
	struct outside_queue_block *first, *last; /* the reader's and the writer's */
};

struct outside_drain {
	struct outside_events *events;
	struct outside_queue *queues; /* one a ring */
	pthread_t thread;
	/* Held while rings are read; who opens events meanwhile must have it. */
	pthread_mutex_t lock;
	bool is_started;
	int wake;   /* eventfd: there are rings now, or the end has come */
	int notify; /* eventfd: there is something in the queues */
	_Atomic bool is_ending;
	_Atomic uint64_t queued_bytes;
	/* Whatever was written to a ring before this time is in its queue. */
	_Atomic uint64_t complete_ns;
	int niceness; /* of the thread */
};

/* 0 or negative errno. */
int outside_drain_start(struct outside_drain *drain, struct outside_events *events, int niceness);
void outside_drain_wake(struct outside_drain *drain);
/* Moves what is left, and ends the thread. The queues stay. */
void outside_drain_stop(struct outside_drain *drain);
void outside_drain_deinit(struct outside_drain *drain);

/* The next record of a queue; NULL: there is none. Valid until it is passed. */
const struct perf_event_header *outside_queue_peek(struct outside_queue *queue);
void outside_queue_pass(struct outside_drain *drain, struct outside_queue *queue,
			const struct perf_event_header *record);

#endif

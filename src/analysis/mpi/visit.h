/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The events of regions that are MPI's, as calls and messages (docs/reference/mpi.md has the values
 * that they are made from).
 */
#ifndef KYMO_ANALYSIS_MPI_VISIT_H
#define KYMO_ANALYSIS_MPI_VISIT_H

#include "analysis/regions/regions.h"

#define MPI_NO_RANK (-1)
/* Contexts of communicators, the same in all of their ranks. */
#define MPI_CONTEXT_UNKNOWN 0u
#define MPI_CONTEXT_WORLD   1u

enum mpi_event_kind {
	MPI_EVENT_CALL,           /* has ended, or was open at the end of the data */
	MPI_EVENT_SENT,           /* in a call that starts persistent requests */
	MPI_EVENT_POSTED,         /* the same, of a receive */
	MPI_EVENT_RECEIVED,       /* in a call that ends many requests */
	MPI_EVENT_SEND_COMPLETED, /* the same, of a send */
	MPI_EVENT_COMMUNICATOR    /* is defined */
};

/* One direction of a message. */
struct mpi_message {
	bool is_there;
	int64_t peer, tag; /* peer: in the world, MPI_NO_RANK: not known */
	uint64_t bytes;
};

struct mpi_event {
	enum mpi_event_kind kind;
	uint32_t process, thread;
	uint32_t region;           /* of the call, also of a mark; MODEL_ENTRY_INDEX_NONE: none */
	const char *function;      /* its name; "" */
	uint64_t begin_ns, end_ns; /* of the call; a mark has the begin of the call that it is in */
	bool is_open;              /* it did not end */
	const uint32_t *around;    /* regions around the call, outermost first */
	size_t around_count;
	uint64_t site;            /* return address; 0: not known */
	const char *communicator; /* its name; "": none */
	uint64_t context, size;   /* size: 0 where it is not said */
	struct mpi_message sent, received;
	/* Of a collective or one-sided call: what the process contributes and gets. */
	uint64_t contributed_bytes, obtained_bytes;
	bool posts, is_cancelled; /* posts: a receive that ends later, with `request` */
	uint64_t request;         /* 0: none */
	int64_t root;             /* rank in the communicator; MPI_NO_RANK: none */
	const char *world_ranks;  /* of a communicator that is defined */
};

/* In order of the process's threads, and of time in each. `each` returns 0 to go on. Texts are
 * valid during the call. */
int mpi_visit_events(struct session *session, uint32_t process,
		     int (*each)(const struct mpi_event *event, void *context), void *context,
		     struct problem *problem);
/* Whether there is anything to visit. */
bool mpi_has_events(const struct session *session);

#endif

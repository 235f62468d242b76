/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A parallel job as one: what its ranks have in common is named by content (a function by its name,
 * module and source file, a call path by its functions), never by an address or a number of one
 * process, so that ranks agree on it without knowing of each other. Beside each stand moments over
 * the ranks (moments.h).
 *
 * Life: job_init(), then one rank after the other is added (ranks/collect.h, or a part file,
 * part.h) by job_merge(); job_sort() brings all of it into an order that depends on nothing but the
 * content, after which nothing more can be added and files are written. What a merge gives does not
 * depend on the order or the grouping of the inputs.
 *
 * Strings are the job's, never NULL. Threads: not thread-safe.
 */
#ifndef KYMO_JOB_JOB_H
#define KYMO_JOB_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/arena.h"
#include "analysis/id_map.h"
#include "common/problem.h"
#include "job/moments.h"

#define JOB_NO_PATH UINT32_MAX

enum job_name_kind {
	JOB_NAME_PROGRAM, /* the root of call paths: the name of an executable */
	JOB_NAME_FUNCTION,
	JOB_NAME_REGION,
	JOB_NAME_SITE, /* a place that calls MPI: the call with the regions around it */
	JOB_NAME_KIND_COUNT
};

struct job_name {
	enum job_name_kind kind;
	const char *name;
	/* Of a function: its module; of a region: its category; of a site: the function that calls.
	 */
	const char *group;
	const char *file; /* of a function: its source file; of a site: file and line; or "" */
};

/* A call path: a function, and the path of its caller. Parents stand before their children. */
struct job_path {
	uint32_t parent; /* JOB_NO_PATH at a program */
	uint32_t name;
};

/* Times are ns. Of functions and paths, where nothing else is said. */
enum job_quantity {
	JOB_CPU_OUTSIDE_MPI, /* its own CPU time, not in a call of MPI */
	JOB_CPU_INSIDE_MPI, /* its own CPU time below a call of MPI (for data, or while it waits) */
	JOB_CPU_TOTAL,      /* with what it called; recursion counted once */
	/* Its own real time without a CPU, where real time was sampled: outside calls of MPI, and
	 * below them. */
	JOB_BLOCKED_OUTSIDE_MPI,
	JOB_BLOCKED_INSIDE_MPI,
	JOB_EVENTS,    /* its own events of a counter */
	JOB_DEVICE,    /* its own time on devices */
	JOB_CALLS,     /* regions: how often they ended */
	JOB_TIME,      /* regions: real time, recursion counted once */
	JOB_SELF_TIME, /* regions: without the regions inside them */
	JOB_QUANTITY_COUNT
};

/* Moments of one quantity of one name or path. */
struct job_row {
	uint32_t owner; /* index of the name or path */
	bool is_of_path;
	enum job_quantity quantity;
	struct job_moments moments;
	uint32_t round; /* of the merge that touched it last */
};

/* What a rank does that another rank waits for, or that waits for another rank. A message is two of
 * them, a send in one rank and a receive in the other one. Times are those of the rank's host. */
enum job_event_kind {
	JOB_EVENT_SEND,
	JOB_EVENT_RECEIVE,
	JOB_EVENT_BARRIER,    /* collectives in which each rank waits for all, */
	JOB_EVENT_ALL,        /* with data; */
	JOB_EVENT_ONE_TO_ALL, /* for the root alone; */
	JOB_EVENT_ALL_TO_ONE, /* in which the root waits for all */
	JOB_EVENT_KIND_COUNT
};

struct job_event {
	/* Of the communicator; the same in all of its ranks. */
	uint64_t context;
	/* When the message was sent, or the receive posted, or the collective entered. */
	uint64_t begin_ns;
	/* Between these the rank was in a call that may wait for it. */
	uint64_t wait_ns, end_ns;
	uint32_t rank, peer; /* peer: of messages; of collectives the root, or JOB_NO_RANK */
	int32_t tag;         /* of messages */
	/* Of messages of one pair of ranks, tag and communicator, and of collectives of one
	 * communicator: they match in this order. */
	uint32_t order;
	uint32_t begin_name, name; /* sites of what began it, and of the call that may wait */
	uint32_t call;             /* number in the rank of the call that may wait */
	uint32_t size;             /* of the communicator, of collectives */
	enum job_event_kind kind;
	/* The call also receives something: it may have waited for that. */
	bool is_mixed;
};

/* Times since the host was booted, which may be years. */
#define JOB_EVENT_TIME_MAX (UINT64_MAX >> 2)

/* Of one rank, and of a job: what is more is cut, and said. */
#define JOB_EVENTS_OF_RANK_MAX 65536u
#define JOB_EVENTS_MAX         ((uint32_t)1 << 20)
#define JOB_EVENTS_OF_RANK_MIN 16u

static inline uint32_t job_get_event_limit(uint32_t size)
{
	uint32_t share = size ? JOB_EVENTS_MAX / size : JOB_EVENTS_OF_RANK_MAX;

	return share > JOB_EVENTS_OF_RANK_MAX   ? JOB_EVENTS_OF_RANK_MAX
	       : share < JOB_EVENTS_OF_RANK_MIN ? JOB_EVENTS_OF_RANK_MIN
						: share;
}

/* Calls of MPI by what they are for. */
enum job_mpi_class {
	JOB_MPI_BARRIER,
	JOB_MPI_COLLECTIVE,
	JOB_MPI_POINT_TO_POINT,
	JOB_MPI_FINALIZE, /* which waits for the others as well */
	JOB_MPI_INIT,
	JOB_MPI_OTHER,
	JOB_MPI_CLASS_COUNT
};

enum job_rank_flags {
	JOB_RANK_KILLED = 1,            /* by a signal: wait_status */
	JOB_RANK_FAILED = 2,            /* its exit status is not 0: wait_status */
	JOB_RANK_UNFINISHED = 4,        /* runs, or ended without a word */
	JOB_RANK_LOST_RECORDS = 8,      /* records are missing: `lost` */
	JOB_RANK_UNREADABLE = 16,       /* a file or a part of one cannot be read */
	JOB_RANK_HAS_SAMPLES = 32,      /* of any kind */
	JOB_RANK_HAS_MPI = 64,          /* calls of MPI were recorded */
	JOB_RANK_HAS_NCCL = 128,        /* records of NCCL are in its directory */
	JOB_RANK_COLLECTED_PART = 256,  /* collection was off for some of the time */
	JOB_RANK_OVERWRITTEN = 512,     /* its oldest records, at the limit of the file */
	JOB_RANK_CALLS_LEFT_OUT = 1024, /* regions that are short and many, or nested too deeply */
	JOB_RANK_FLAGS_ALL = 2047
};
#define JOB_RANK_INCOMPLETE                                                                        \
	(JOB_RANK_KILLED | JOB_RANK_UNFINISHED | JOB_RANK_LOST_RECORDS | JOB_RANK_UNREADABLE |     \
	 JOB_RANK_COLLECTED_PART | JOB_RANK_OVERWRITTEN)

struct job_rank {
	uint32_t rank, size; /* size: of the job, as the rank knows it; 0: it does not */
	uint32_t pid, flags;
	int32_t wait_status; /* of wait(2), with JOB_RANK_KILLED and JOB_RANK_FAILED */
	uint32_t processes;
	uint64_t cpu_ns, cpu_in_mpi_ns, wall_ns, samples, lost;
	uint64_t mpi_ns[JOB_MPI_CLASS_COUNT]; /* real time in the calls themselves */
	/* Of MPI: how many there were, and how many of these are on communicators or with peers
	 * that kymo could not tell. */
	uint64_t events, unknown_events;
	const char *host, *directory, *command;
};

/* A directory from which no rank came. */
struct job_refused {
	const char *directory;
	const char *reason; /* why it cannot be read; "": it has records of NCCL and nothing else */
};

struct job {
	struct arena arena;
	struct job_rank *ranks;
	struct job_refused *refused;
	struct job_name *names;
	struct job_path *paths;
	struct job_row *rows;
	struct job_event *events;
	uint32_t rank_count, refused_count, name_count, path_count, row_count, event_count;
	size_t rank_capacity, refused_capacity, name_capacity, path_capacity, row_capacity;
	size_t event_capacity;
	struct id_map rank_map, refused_map, name_map, path_map, row_map; /* by content -> index */
	uint32_t size;        /* of the job, as its ranks know it; 0: none does */
	uint32_t lowest_rank; /* JOB_NO_RANK: there is none */
	uint32_t round;
};

void job_init(struct job *job);
void job_deinit(struct job *job);

/* Each returns 0 or a negative errno; *ret is an index. Texts are copied. */
int job_add_rank(struct job *job, const struct job_rank *rank, struct problem *problem);
int job_add_refused(struct job *job, const char *directory, const char *reason);
int job_find_or_add_name(struct job *job, const struct job_name *name, uint32_t *ret);
int job_find_or_add_path(struct job *job, uint32_t parent, uint32_t name, uint32_t *ret);
/* Adds to what is there of this owner and quantity; value 0 adds nothing. */
int job_add_moments(struct job *job, uint32_t owner, bool is_of_path, enum job_quantity quantity,
		    const struct job_moments *moments);

int job_add_event(struct job *job, const struct job_event *event);

/* Adds all of `from`, whose ranks `to` must not have. -EEXIST: it has one of them, -EINVAL: the
 * ranks are of jobs of different sizes; `to` is of no use then. */
int job_merge(struct job *to, const struct job *from, struct problem *problem);
/* 0 or -ENOMEM. */
int job_sort(struct job *job);

/* Ranks that the job has and that are not here. */
uint32_t job_count_missing_ranks(const struct job *job);
/* 64 bits of content that every job agrees on. */
uint64_t job_name_get_id(const struct job_name *name);
/* For job_sort(): finds rows by their present places again. 0 or -ENOMEM. */
int job_index_rows(struct job *job);
/* NULL: there is none. */
const struct job_row *job_find_row(const struct job *job, uint32_t owner, bool is_of_path,
				   enum job_quantity quantity);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting on devices: what the tool library asks of a backend that can count (struct
 * device_counting_backend, a member of struct device_backend), and what such a backend tells it
 * (struct device_counting_sink, a member of struct device_sink).
 *
 * A backend knows *events*: a block and a text ("SW" and "page-faults", "SM" and
 * "sm__cycles_elapsed"), which have values along some dimensions. Names, expressions, derived
 * metrics, records and contexts are the tool library's. Events that are counted together are a
 * *set*: made once, checked against what the hardware does in one pass, never changed, used any
 * number of times, by several threads at once.
 *
 * Values of a set are one array of doubles: those of its first request, then those of its second,
 * and so on. One request has as many values as the product of its event's extents; they stand in
 * row-major order, the extents being in ascending order of their dimension, the first the slowest.
 *
 * Who owns what: texts a backend gives are valid as long as the process is. A set belongs to the
 * tool library, which destroys it when no kernel and no device counting uses it any more.
 */
#ifndef KYMO_DEVICE_COUNTING_H
#define KYMO_DEVICE_COUNTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

#define COUNTING_PROBLEM_TEXT_BYTES 512

/* The numbers are those of rocprofiler_counter_dimension_id_t. */
enum counting_dimension_kind {
	COUNTING_DIMENSION_NONE,
	COUNTING_DIMENSION_XCC,
	COUNTING_DIMENSION_AID,
	COUNTING_DIMENSION_SHADER_ENGINE,
	COUNTING_DIMENSION_AGENT,
	COUNTING_DIMENSION_SHADER_ARRAY,
	COUNTING_DIMENSION_WGP,
	COUNTING_DIMENSION_INSTANCE,
	COUNTING_DIMENSION_COUNT
};

/* Positions of a dimension are below this; a backend with more of them adds neighbours up. */
#define COUNTING_XCC_EXTENT_MAX           32u
#define COUNTING_AID_EXTENT_MAX           16u
#define COUNTING_SHADER_ENGINE_EXTENT_MAX 64u
#define COUNTING_AGENT_EXTENT_MAX         64u
#define COUNTING_SHADER_ARRAY_EXTENT_MAX  64u
#define COUNTING_WGP_EXTENT_MAX           512u
#define COUNTING_INSTANCE_EXTENT_MAX      4096u

struct counting_dimension_extent {
	enum counting_dimension_kind dimension;
	uint32_t size; /* >= 1 */
};

enum counting_status {
	COUNTING_OK,
	COUNTING_NO_SUCH_EVENT, /* this agent does not have it */
	COUNTING_DOES_NOT_FIT,  /* not in one pass; the text says which events are too many */
	COUNTING_NOT_PERMITTED, /* the text says what would permit it */
	COUNTING_BUSY,          /* somebody else counts: another process, another session */
	COUNTING_NOT_SUPPORTED, /* this way of counting, or this rollup or accumulation */
	COUNTING_NOT_READY,     /* the runtime is not up yet; later it may work */
	COUNTING_NO_MEMORY,
	COUNTING_FAILED, /* anything else; the text says what */
	/* Why one kernel was not counted: */
	COUNTING_FILTERED,    /* excluded by name or range */
	COUNTING_TIMED_OUT,   /* the watchdog gave up waiting: kernels wait for each other */
	COUNTING_NOT_FINISHED /* still running when the process ended */
};

struct counting_problem {
	char text[COUNTING_PROBLEM_TEXT_BYTES]; /* one line, no newline; "" if there is nothing to
						 * say
						 */
};

/* How instances of an event become one value, where the hardware does that. */
enum counting_rollup {
	COUNTING_ROLLUP_NONE, /* every instance; what has rollups only gives its sum */
	COUNTING_ROLLUP_SUM,
	COUNTING_ROLLUP_AVERAGE,
	COUNTING_ROLLUP_MIN,
	COUNTING_ROLLUP_MAX
};

/* Summing up a level, every clock or every fourth. The numbers are upstream's. */
enum counting_accumulation_resolution {
	COUNTING_ACCUMULATE_NONE,
	COUNTING_ACCUMULATE_LOW_RES,
	COUNTING_ACCUMULATE_HIGH_RES
};

#define COUNTING_BY_DISPATCH 1u /* ways of counting */
#define COUNTING_BY_DEVICE   2u

struct counting_event_info {
	const char *name;        /* [A-Za-z_][A-Za-z0-9_]*: how expressions and users call it */
	const char *block;       /* the unit: "SM", "L2", "SW", ... */
	const char *event;       /* the backend's own text of it; with the block it is unique */
	const char *description; /* one line, "" if there is none */
	/* Ascending by dimension, at least one; an event with one value has INSTANCE of size 1. */
	struct counting_dimension_extent extents[COUNTING_DIMENSION_COUNT - 1];
	uint32_t extents_count;
	/* The hardware gives rollups, not instances: `extents` is INSTANCE of size 1, and
	 * reduce(event, op) becomes a request with a rollup. */
	bool has_rollups;
	uint32_t ways; /* COUNTING_BY_* */
};

struct counting_event_request {
	const char *block, *event;
	enum counting_rollup rollup; /* not NONE only where has_rollups; then there is one value */
	enum counting_accumulation_resolution accumulation_resolution;
};

struct device_counting_backend {
	/* Every event of the agent by itself, without starting a runtime where that can be had.
	 * false from `each` ends it. COUNTING_NOT_SUPPORTED: nothing can be counted on this agent;
	 * COUNTING_NOT_READY: ask again when the runtime is up. An agent that is not this backend's
	 * is NO_SUCH_EVENT. */
	enum counting_status (*events)(device_handle agent,
				       bool (*each)(void *context,
						    const struct counting_event_info *event),
				       void *context);
	/* An event by its texts, which may be one that events() does not list (a raw code of perf).
	 * name is "" or the backend's own. NO_SUCH_EVENT, NOT_SUPPORTED, NOT_READY. */
	enum counting_status (*event)(device_handle agent, const char *block, const char *event,
				      struct counting_event_info *told);
	/* Checked and made. ways: in which it fits one pass; at least one where OK. It is made
	 * before the runtime is up too, where what it takes is known. problem is filled in for
	 * everything but OK. Any thread, also within dispatch_select() of the sink. */
	enum counting_status (*set_make)(device_handle agent,
					 const struct counting_event_request *requests,
					 uint32_t count, void **set, uint32_t *ways,
					 struct counting_problem *problem);
	void (*set_free)(void *set);

	/* Kernels of the agent are (or are no longer) to be counted: from now on each goes alone,
	 * and each is asked about. Called on the first start and the last stop of a context that
	 * counts kernels, for every agent of the backend there is (agents found later ask
	 * counts_kernels()). Kernels in flight are let finish, nobody waits here. */
	void (*dispatch_counting_switch)(device_handle agent, bool on);

	/* Counting over time, one set per agent. Values are those since device_set_sink().
	 * interval_ns: besides, sink's device_sample() is called about every so often with the
	 * values of that interval; 0: it is not. */
	enum counting_status (*device_counting_start)(device_handle agent, void *set,
						      uint64_t interval_ns,
						      struct counting_problem *problem);
	/* Until now: count is the whole set's. time: when, CLOCK_BOOTTIME. Any thread. */
	enum counting_status (*device_counting_read)(device_handle agent, double *values,
						     size_t count, uint64_t *time,
						     struct counting_problem *problem);
	/* No device_sample() comes behind it. */
	void (*device_counting_stop)(device_handle agent);
};

struct device_counting_sink {
	/* Are kernels of this agent to be counted now? One load. */
	bool (*counts_kernels)(device_handle agent);
	/* Behind kernel_enqueue(), on the thread that enqueues, before the runtime gets the kernel:
	 * the set it is to be counted with, or NULL. The tool's callback runs in it, so that no
	 * lock may be held. A handle of correlation_open() may be given too, for a graph: what
	 * kernel_added_to_launch() makes of it is counted with the same set, one by one. A kernel
	 * that is not asked about is not counted, and nothing is said of it. */
	void *(*dispatch_select_set)(device_handle kernel, const struct device_kernel_launch *told);
	/* For each handle that was given a set (and each that kernel_added_to_launch() made of it),
	 * before its kernel_complete() or kernel_submitted(failed), exactly one of these. count is
	 * the whole set's. */
	void (*dispatch_counted)(device_handle kernel, const double *values, size_t count,
				 uint64_t start, uint64_t end);
	/* It ran, but was not counted. text: one line. */
	void (*dispatch_not_counted)(device_handle kernel, enum counting_status why,
				     const char *text);
	/* The values of one interval of counting over time; the backend's own thread. */
	void (*device_sample_taken)(device_handle agent, const double *values, size_t count,
				    uint64_t start, uint64_t end);
	/* Samples that were lost (a gap, a full image), to be told with the others' losses. */
	void (*device_samples_lost)(device_handle agent, uint64_t count);
	/* What was NOT_READY may be ready now: devices of a runtime can be used. CUDA's comes on a
	 * thread of the program's, within the first of its calls that uses a context, which waits
	 * for it; no lock is held that device_set_sink() takes. */
	void (*runtime_ready)(void);
};

/* "does not fit in one pass", ... */
const char *counting_status_to_text(enum counting_status status);
/* How many values an event has without a rollup; 0: more than 2^24, or no extent. */
static inline size_t counting_get_event_value_count(const struct counting_event_info *event)
{
	size_t values = event->extents_count != 0 ? 1 : 0;

	for (uint32_t i = 0; i < event->extents_count; i++) {
		values *= event->extents[i].size;
		if (values > (size_t)1 << 24)
			return 0;
	}
	return values;
}

/* Among all backends, the one whose agent it is. NULL: none of them can count there. */
const struct device_counting_backend *counting_find_backend_of_agent(device_handle agent);
/* For tests: a backend that is asked before all others. NULL: none. Never set in the library. */
void device_counting_set_test_backend(const struct device_counting_backend *first);

#endif

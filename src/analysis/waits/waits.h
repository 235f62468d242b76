/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where threads blocked, and who woke them: sums by thread, stack and waker, as --off-cpu records
 * them. A kind of data of the session; empty where it was not asked for.
 */
#ifndef KYMO_ANALYSIS_WAITS_WAITS_H
#define KYMO_ANALYSIS_WAITS_WAITS_H

#include "analysis/session_kind.h"

#define WAITS_DATA_KIND_NAME "waits"

/* Of a stack with names; inlined functions have frames of their own. */
struct model_wait_frame {
	const char *function, *file; /* file: NULL: not known */
	const char *module;          /* name, or NULL: not known */
	uint32_t line;
};

struct model_wait_stack {
	uint32_t process; /* MODEL_ENTRY_INDEX_NONE: it is not in the session */
	uint32_t address_count, frame_count;
	const uint64_t *addresses;             /* innermost first */
	const struct model_wait_frame *frames; /* the same, after session_symbolize() */
	enum spool_stack_end end;
};

struct model_wait {
	uint32_t process, thread;  /* thread: index, or MODEL_ENTRY_INDEX_NONE */
	uint32_t internal_id, tid; /* tid 0: of all threads that no room was found for */
	uint64_t waits, ns, longest_ns;
	struct model_wait_stack stack, waker_stack;
	enum spool_waker waker;
	uint32_t waker_pid, waker_image, waker_tid;
	const char *waker_name;
};

struct model_waits {
	struct model_wait *list; /* by time, the most first */
	size_t count, capacity;
	uint64_t ns;
};

/* Never NULL for sessions that were opened. */
const struct model_waits *session_get_waits(const struct session *session);
const char *spool_waker_get_name(enum spool_waker waker); /* "unknown", "thread", … */

extern const struct session_data_kind_operations waits_data_kind_operations;

#endif

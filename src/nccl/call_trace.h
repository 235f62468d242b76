/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Every call of NCCL's as a line of text (NCCL_CALL_TRACE=FILE): for tests that replay what NCCL
 * really did, and for questions about NCCL itself. Slow: a lock and a formatted line a call.
 *
 *   NS TID init  CONTEXT api RANK RANKS NODES HASH MASK NAME
 *   NS TID start CONTEXT HANDLE KIND PARENT RANK word...  (by kind: call_trace.c)
 *   NS TID stop  HANDLE
 *   NS TID state HANDLE STATE KNOWN VALUE
 *   NS TID final CONTEXT
 *
 * Numbers are decimal, handles and contexts hexadecimal, NAME the rest of the line, escaped.
 */
#ifndef KYMO_NCCL_CALL_TRACE_H
#define KYMO_NCCL_CALL_TRACE_H

#include <stdbool.h>

#include "nccl/event.h"

struct communicator_identity;

extern int call_trace_descriptor; /* -1: off */

static inline bool call_trace_is_on(void)
{
	return __atomic_load_n(&call_trace_descriptor, __ATOMIC_RELAXED) >= 0;
}

/* 0 or negative errno. */
int call_trace_begin(const char *path);
/* A forked child. */
void call_trace_leave(void);
void call_trace_init(const void *context, const struct communicator_identity *identity);
void call_trace_start(const void *context, const void *handle, const struct event *event);
void call_trace_stop(const void *handle);
void call_trace_state(const void *handle, int state, const struct event_state *arguments);
void call_trace_finalize(const void *context);
/* Own thread: tells once that lines could not be written, if any. */
void call_trace_round(void);

#endif

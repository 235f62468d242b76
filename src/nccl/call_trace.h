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

extern int call_trace_file_descriptor; /* -1: off */

static inline bool call_trace_is_on(void)
{
	return __atomic_load_n(&call_trace_file_descriptor, __ATOMIC_RELAXED) >= 0;
}

/* 0 or negative errno. */
int call_trace_open(const char *path);
/* A forked child. */
void call_trace_turn_off(void);
void call_trace_write_init_call(const void *context, const struct communicator_identity *identity);
void call_trace_write_event_start(const void *context, const void *handle,
				  const struct plugin_event_start_arguments *event);
void call_trace_write_event_stop(const void *handle);
void call_trace_write_event_state(const void *handle, int state,
				  const struct event_state_arguments *arguments);
void call_trace_write_finalize_call(const void *context);
/* Own thread: tells once that lines could not be written, if any. */
void call_trace_report_write_error_once(void);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Work on devices in the tree of addresses: a kind of data that knows the stacks of launches adds
 * them, and below each a node for the kernel or the kind of copy (FRAME_DEVICE_WORK). After the
 * samples were read, and before anything is symbolized.
 */
#ifndef KYMO_ANALYSIS_LAUNCHED_H
#define KYMO_ANALYSIS_LAUNCHED_H

#include "analysis/session_private.h"

struct launch_stack {
	const uint64_t *frames; /* innermost first: return addresses, frames of interpreted code */
	uint32_t count;
	enum spool_stack_end end;
	uint64_t time_ns;
};

struct launched_work {
	uint32_t thread; /* MODEL_ENTRY_INDEX_NONE: not known */
	uint32_t node;   /* of the stack, or of the reason why there is none */
	const char *name;
	uint64_t count, ns;
};

/* The node of a stack, below the process's root; CALLTREE_NO_NODE: out of memory. */
uint32_t launched_find_or_add_stack(struct session *session, uint32_t process,
				    const struct launch_stack *stack);
/* A node for work without a stack, below the process's root, which says why. As above. */
uint32_t launched_find_or_add_reason(struct session *session, uint32_t process, const char *text);
/* 0 or -ENOMEM. */
int launched_add_work(struct session *session, const struct launched_work *work);

#endif

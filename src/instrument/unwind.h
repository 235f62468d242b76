/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unwinding through instrumented calls: for the program's own unwinders (exceptions, backtrace(),
 * pthread_exit), and for kymo's.
 *
 * The tables of an arena (binary/plan/stub_frames.c) do for any unwinder. They search all shadow
 * stacks from one end to the other, though, in an interpreted language, for every frame. So where
 * we are asked for tables in the very thread that unwinds, it gets tables of its own, whose
 * expression looks at the shadow entry first that is next in line, and then on this thread's shadow
 * stack.
 *
 * Everything here is signal-safe and allocates nothing.
 */
#ifndef KYMO_INSTRUMENT_UNWIND_H
#define KYMO_INSTRUMENT_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unwind/unwind.h"

struct unwind_tables {
	uint64_t start, end;      /* of the code that they are for */
	const void *eh_frame_hdr; /* .eh_frame_hdr */
};

/* Tables for an address in an arena; false: it is in none. `caller`: who asks, to tell when an
 * unwinder begins again. */
bool instrument_find_unwind_tables(uint64_t address, uint64_t caller, struct unwind_tables *ret);

/* Are there arenas? */
bool instrument_has_arenas(void);
/* Where a frame whose pc or return address is `ip` is, as a program without stubs sees it. False:
 * it would not see it. */
bool instrument_find_address_without_stubs(uint64_t ip, uint64_t *ret);

/* For core/unwind/unwind.h: what frames would be like without stubs. */
extern const struct unwind_trampoline_callbacks instrument_unwind_trampoline_ops;

#endif

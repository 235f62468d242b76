/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The state of one walk, shared by the walker (unwind_walk.c) and what it falls back on where no
 * table says anything (unwind_guess.c). Everything here runs in signal handlers.
 */
#ifndef KYMO_CORE_UNWIND_WALK_H
#define KYMO_CORE_UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unwind.h"
#include "core/unwind_memo.h"
#include "core/unwind_table.h"

/* Stack words are read where sanitizers see red zones. */
#define UNWIND_UNSANITIZED __attribute__((no_sanitize("address", "thread")))

/* Most windows of UNWIND_WINDOW bytes that one walk fetches: 512 KiB of foreign stack. */
#define UNWIND_FETCHES_MAX 32u

/* How many callers of an interrupted frame may have their CFA in a register that calls need not
 * preserve: OpenSSL's AES-GCM keeps it in rax and calls helpers that leave rax alone. */
#define UNWIND_AGE_MAX 4u

enum unwind_step {
	UNWIND_STEP_CALLER,      /* ip is a return address */
	UNWIND_STEP_INTERRUPTED, /* ip is exact: the frame below was a signal's */
	UNWIND_STEP_END          /* walk->end says why */
};

struct unwind_walk {
	const struct unwind_view *view;
	struct unwind_cache *cache;
	struct unwind_scratch *scratch;
	uint64_t direct_low, direct_high; /* readable without a system call */
	uint64_t ip, sp, bp, bx;
	const uint64_t *gregs; /* of the last interrupted frame, REG_* order, or NULL */
	uint64_t context;      /* address of a ucontext on the stack with these registers, or 0 */
	uint32_t age;          /* frames walked since */
	struct unwind_memo_cursor memo;
	uint32_t fetches;
	const void *place; /* of the detours */
	bool exact;        /* ip is an interrupted pc, not a return address */
	bool track_bx;     /* second attempt: recover rbx through all frames */
	bool wants_bx;     /* the first attempt failed for want of rbx */
	bool bx_known;
	enum spool_stack_end end;
};

/* One word of the walked stack; false: cannot be had, and walk->end says so. */
bool unwind_read(struct unwind_walk *walk, uint64_t address, uint64_t *ret);

/* The executable mapping that holds an address, or NULL. */
const struct unwind_module *unwind_view_find(const struct unwind_view *view, uint64_t address);

/* The rule at an address of a module; NULL: there is none. */
const struct unwind_rule *unwind_module_find(const struct unwind_module *module, uint64_t pc);

/* Moves from a frame without rule to its caller by what stacks usually look like. */
enum unwind_step unwind_guess(struct unwind_walk *walk);

/* Takes over the registers of the ucontext at an address. */
enum unwind_step unwind_from_context(struct unwind_walk *walk, uint64_t context);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The state of one walk, shared by the walker (walk.c) and what it falls back on where no
 * table says anything (heuristics.c). Everything here runs in signal handlers.
 */
#ifndef KYMO_CORE_UNWIND_WALK_H
#define KYMO_CORE_UNWIND_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/unwind/frame_cache.h"
#include "core/unwind/table.h"
#include "core/unwind/unwind.h"

/* Stack words are read where sanitizers see red zones. */
#define UNWIND_UNSANITIZED __attribute__((no_sanitize("address", "thread")))

/* Most windows of UNWIND_STACK_WINDOW_SIZE bytes that one walk fetches: 512 KiB of foreign stack.
 */
#define UNWIND_STACK_WINDOW_FETCHES_MAX 32u

/* How many callers of an interrupted frame may have their CFA in a register that calls need not
 * preserve: OpenSSL's AES-GCM keeps it in rax and calls helpers that leave rax alone. */
#define UNWIND_VOLATILE_REGISTER_CALLERS_MAX 4u

enum unwind_step_result {
	UNWIND_STEP_CALLER,      /* ip is a return address */
	UNWIND_STEP_INTERRUPTED, /* ip is exact: the frame below was a signal's */
	UNWIND_STEP_END          /* walk->end says why */
};

/* Whose stacks are walked. In the process they are its own, read by their addresses. Compiled with
 * KYMO_UNWIND_OUTSIDE for the kymo command (src/outside), the walker reads a copy of the stack of
 * another process, at a distance from its addresses that is set before each walk, and takes the
 * bytes of code from whoever set `read_code`. */
#ifdef KYMO_UNWIND_OUTSIDE
struct unwind_outside {
	uint64_t stack_displacement; /* address of a word in the copy, less its address */
	bool (*read_code)(uint64_t address, uint8_t *buffer, size_t size);
};
extern struct unwind_outside unwind_outside;
/* A word that points into known code, behind a call. */
bool unwind_outside_is_return_address(const struct unwind_all_modules_view *view, uint64_t address);
#define UNWIND_STACK_DISPLACEMENT unwind_outside.stack_displacement
#else
#define UNWIND_STACK_DISPLACEMENT 0u
#endif

/* Where a stack word is read. */
static inline const uint64_t *unwind_get_stack_word_place(uint64_t address)
{
	return (const uint64_t *)(uintptr_t)(address + UNWIND_STACK_DISPLACEMENT);
}

struct unwind_walk {
	const struct unwind_all_modules_view *modules_view;
	struct unwind_cache *cache;
	struct unwind_scratch *scratch;
	uint64_t direct_read_low, direct_read_high; /* readable without a system call */
	uint64_t ip, sp, bp, bx;
	const uint64_t *interrupted_gregs; /* of the last interrupted frame, REG_* order, or NULL */
	uint64_t context; /* address of a ucontext on the stack with these registers, or 0 */
	uint32_t frames_since_interrupted; /* frames walked since */
	struct unwind_frame_cache_cursor frame_cache_cursor;
	uint32_t window_fetch_count;
	const void *place;      /* of the trampoline_ops */
	bool is_ip_exact;       /* ip is an interrupted pc, not a return address */
	bool track_bx;          /* second attempt: recover rbx through all frames */
	bool failed_without_bx; /* the first attempt failed for want of rbx */
	bool is_bx_known;
	bool met_unknown_address; /* an address lay in no module */
	bool met_interrupted_frame;
	uint64_t *stack_pointers; /* by frame; NULL: not wanted */
	enum spool_stack_end end;
};

/* One word of the walked stack; false: cannot be had, and walk->end says so. */
bool unwind_read_stack_word(struct unwind_walk *walk, uint64_t address, uint64_t *ret);

/* The executable mapping that holds an address, or NULL. */
const struct unwind_module *unwind_view_find_module(const struct unwind_all_modules_view *view,
						    uint64_t address);

/* The rule at an address of a module; NULL: there is none. */
const struct unwind_rule *unwind_module_find_rule(const struct unwind_module *module, uint64_t pc);

/* Carries out one operation on the operand stack; returns its new depth. */
uint32_t unwind_apply_op_to_operand_stack(const struct unwind_expression_operation *op,
					  uint64_t *stack, uint32_t depth);

/* Moves from a frame without rule to its caller by what stacks usually look like. */
enum unwind_step_result unwind_guess_caller(struct unwind_walk *walk);

/* Takes over the registers of the ucontext at an address. */
enum unwind_step_result unwind_step_by_ucontext(struct unwind_walk *walk, uint64_t context);

#endif

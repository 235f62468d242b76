/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Alignment checks. A program may ask for a SIGBUS at each unaligned access of a thread (the flag
 * AC of rflags; Intel SDM vol. 3, 6.15, interrupt 17), to find its own or where they cannot be. The
 * kernel starts signal handlers with the flag as it is, and compiled code is full of such accesses.
 * The return from the handler puts the flag back.
 */
#ifndef KYMO_CORE_BASE_ALIGNMENT_CHECK_H
#define KYMO_CORE_BASE_ALIGNMENT_CHECK_H

#include <stdint.h>
#include <ucontext.h>
#include <x86intrin.h>

#define RFLAGS_ALIGNMENT_CHECK (1ull << 18)

/* First thing in a handler of ours. */
static inline __attribute__((always_inline)) void alignment_check_end_in_handler(void *context)
{
	greg_t flags = ((const ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	if (__builtin_expect(flags & (greg_t)RFLAGS_ALIGNMENT_CHECK, 0))
		__writeeflags(__readeflags() & ~RFLAGS_ALIGNMENT_CHECK);
}

/* Before the program's handler is called in place of ours. */
static inline __attribute__((always_inline)) void alignment_check_resume(void *context)
{
	greg_t flags = ((const ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	if (__builtin_expect(flags & (greg_t)RFLAGS_ALIGNMENT_CHECK, 0))
		__writeeflags(__readeflags() | RFLAGS_ALIGNMENT_CHECK);
}

#endif

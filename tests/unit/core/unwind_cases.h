/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Hand-written functions with unusual frames, for tests/unit/core/unwind_walk.c. Each calls nothing
 * and returns.
 */
#ifndef KYMO_TESTS_UNWIND_CASES_H
#define KYMO_TESTS_UNWIND_CASES_H

void case_saved_below(void);       /* OpenSSL's SHA-512: the CFA is *(rsp - 8) + 8 */
void case_return_in_rdi(void);     /* vfork(): the return address is in a register alone */
void case_saved_slot(void);        /* OpenSSL's bn_mul_mont: the CFA is *(rsp + r9 * 8 + 8) */
void case_cfa_in_rax(void);        /* CFA in a register that is no frame pointer */
void case_cfa_in_rax_across(void); /* OpenSSL's AES-GCM: and calls a helper that keeps rax */
void case_cfa_in_rbx(void (*callee)(void)); /* as in ld.so's lazy binding, across a call */
void case_leaf(void);                       /* no CFI at all, no frame */
void case_pushed_bp(void);                  /* no CFI, frame pointer */
void case_wrong_cfi(void);                  /* CFI that points far outside the stack */
void case_wrong_cfi_low(void);              /* CFI whose frame address does not grow */
void case_outermost(void (*callee)(void));  /* return address undefined: the walk ends here */

/* Ranges of instructions with the frame that the name says. */
extern const char case_leaf_end[], case_pushed_bp_end[], case_wrong_cfi_end[],
	case_wrong_cfi_low_end[], case_outermost_end[];
/* A signal trampoline without CFI, as other C libraries have. */
void case_restorer(void);

/* Set and clear the processor's trap flag: SIGTRAP after every instruction in between. */
void trace_on(void);
void trace_off(void);

/* C++: throws, catches, calls back while the exception is under way. */
void case_throw(int depth, void (*callback)(void));

#endif

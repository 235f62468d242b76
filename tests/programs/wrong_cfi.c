/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code whose unwind information is missing or lies: a leaf without any, one that claims an absurd
 * frame, one that points back to itself, a null frame pointer chain. The walk has to stop, never
 * crash or run on for ever.
 */
#include <stdlib.h>

#include "check.h"

void leaf_without(unsigned long spins);
void claims_far(unsigned long spins);
void claims_itself(unsigned long spins);
void claims_zero(unsigned long spins);
void bad_chain(unsigned long spins);

#define SPIN "1: dec %rdi\n jnz 1b\n"
#define FUNCTION(name, cfi, body)                                                                  \
	__asm__(".pushsection .text\n.globl " #name "\n.hidden " #name "\n.type " #name            \
		",@function\n" #name ":\n" cfi body ".size " #name ", .-" #name "\n.popsection\n")

FUNCTION(leaf_without, "", SPIN "ret\n");
FUNCTION(claims_far, ".cfi_startproc\n.cfi_def_cfa %rsp, 0x7ffffff0\n", SPIN "ret\n.cfi_endproc\n");
FUNCTION(claims_itself, ".cfi_startproc\n.cfi_def_cfa %rsp, -8\n", SPIN "ret\n.cfi_endproc\n");
FUNCTION(claims_zero, ".cfi_startproc\n.cfi_def_cfa %rdi, 8\n", SPIN "ret\n.cfi_endproc\n");
/* A frame pointer that leads nowhere, in code without unwind information. */
FUNCTION(bad_chain, "", "push %rbp\nmov $0xdead0000, %rbp\n" SPIN "pop %rbp\nret\n");

int main(void)
{
	uint64_t end = check_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 400 * NS_PER_MS;

	while (check_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		leaf_without(100000);
		claims_far(100000);
		claims_itself(100000);
		claims_zero(100000);
		bad_chain(100000);
	}
	return check_passed("wrong_cfi");
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What user_entry.S and user.c agree on: the frame of a wrapped call. Offsets are used by both.
 */
#ifndef KYMO_WRAPPERS_USER_CALL_H
#define KYMO_WRAPPERS_USER_CALL_H

#define USER_FUNCTIONS 256

#define USER_INTEGER 0   /* rdi rsi rdx rcx r8 r9 */
#define USER_RAX     48  /* on entry: vector registers of a variadic call; then the result */
#define USER_RDX     56  /* second half of a result */
#define USER_R10     64  /* static chain */
#define USER_INDEX   72  /* of the function */
#define USER_STACK   80  /* first argument in memory */
#define USER_WORDS   88  /* how many words of them the original gets */
#define USER_REGION  96  /* open region */
#define USER_VECTOR  128 /* zmm0 .. zmm7, 64 bytes each, or as much of them as there is */
#define USER_SIZE    640

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct user_call {
	uint64_t integer[6];
	uint64_t rax, rdx, r10, index;
	const uint64_t *stack;
	uint64_t words;
	uint32_t region, unused;
	uint64_t reserved[3];
	uint64_t vector[8][8];
};

_Static_assert(offsetof(struct user_call, rax) == USER_RAX, "layout");
_Static_assert(offsetof(struct user_call, index) == USER_INDEX, "layout");
_Static_assert(offsetof(struct user_call, stack) == USER_STACK, "layout");
_Static_assert(offsetof(struct user_call, words) == USER_WORDS, "layout");
_Static_assert(offsetof(struct user_call, region) == USER_REGION, "layout");
_Static_assert(offsetof(struct user_call, vector) == USER_VECTOR, "layout");
_Static_assert(sizeof(struct user_call) == USER_SIZE, "layout");
#endif

#endif

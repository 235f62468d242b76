/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What user_entry.S and user.c agree on: the frame of a wrapped call. Offsets are used by both.
 */
#ifndef KYMO_WRAPPERS_USER_CALL_H
#define KYMO_WRAPPERS_USER_CALL_H

#define USER_FUNCTIONS_MAX 256

#define USER_CALL_INTEGER_OFFSET 0 /* rdi rsi rdx rcx r8 r9 */
#define USER_CALL_RAX_OFFSET                                                                       \
	48 /* on entry: vector registers of a variadic call; then the result                       \
	    */
#define USER_CALL_RDX_OFFSET             56 /* second half of a result */
#define USER_CALL_R10_OFFSET             64 /* static chain */
#define USER_CALL_INDEX_OFFSET           72 /* of the function */
#define USER_CALL_STACK_ARGUMENTS_OFFSET 80 /* first argument in memory */
#define USER_CALL_WORDS_OFFSET           88 /* how many words of them the original gets */
#define USER_CALL_REGION_OFFSET          96 /* open region */
#define USER_CALL_VECTOR_OFFSET                                                                    \
	128 /* zmm0 .. zmm7, 64 bytes each, or as much of them as there is */
#define USER_CALL_SIZE 640

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct user_call {
	uint64_t integer_registers[6];
	uint64_t rax, rdx, r10, index;
	const uint64_t *stack_arguments;
	uint64_t stack_word_count;
	uint32_t region, unused;
	uint64_t reserved[3];
	uint64_t vector_registers[8][8];
};

_Static_assert(offsetof(struct user_call, rax) == USER_CALL_RAX_OFFSET, "layout");
_Static_assert(offsetof(struct user_call, index) == USER_CALL_INDEX_OFFSET, "layout");
_Static_assert(offsetof(struct user_call, stack_arguments) == USER_CALL_STACK_ARGUMENTS_OFFSET,
	       "layout");
_Static_assert(offsetof(struct user_call, stack_word_count) == USER_CALL_WORDS_OFFSET, "layout");
_Static_assert(offsetof(struct user_call, region) == USER_CALL_REGION_OFFSET, "layout");
_Static_assert(offsetof(struct user_call, vector_registers) == USER_CALL_VECTOR_OFFSET, "layout");
_Static_assert(sizeof(struct user_call) == USER_CALL_SIZE, "layout");
#endif

#endif

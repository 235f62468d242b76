/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Entries of functions that the user wraps by name, whose types the compiler does not know: one a
 * function, made beforehand so that no memory has to be writable and executable.
 *
 * An entry keeps all registers that can carry arguments (psABI, 3.2.3: rdi rsi rdx rcx r8 r9, rax,
 * r10, vector registers 0 to 7; r11 is free), asks user_enter() what to call, and either jumps there
 * as if nothing had been, or calls it with the same registers and a copy of the arguments in
 * memory, as many words as the declared types take. It is an ordinary frame with rbp and unwind
 * rules, so that stacks can be walked, longjmp passes over it and C++ exceptions pass through:
 * user_personality() ends the region then.
 */
#include "wrappers/user_call.h"

	.text

.macro save_vectors
	cmpb $1, user_vectors(%rip)
	jb 7f
	je 8f
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	vmovdqu64 %zmm\n, (USER_CALL_VECTOR_OFFSET + 64 * \n)(%rsp)
	.endr
	jmp 9f
8:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	vmovdqu %ymm\n, (USER_CALL_VECTOR_OFFSET + 64 * \n)(%rsp)
	.endr
	jmp 9f
7:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	movups %xmm\n, (USER_CALL_VECTOR_OFFSET + 64 * \n)(%rsp)
	.endr
9:
.endm

.macro restore_vectors
	cmpb $1, user_vectors(%rip)
	jb 7f
	je 8f
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	vmovdqu64 (USER_CALL_VECTOR_OFFSET + 64 * \n)(%rsp), %zmm\n
	.endr
	jmp 9f
8:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	vmovdqu (USER_CALL_VECTOR_OFFSET + 64 * \n)(%rsp), %ymm\n
	.endr
	jmp 9f
7:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	movups (USER_CALL_VECTOR_OFFSET + 64 * \n)(%rsp), %xmm\n
	.endr
9:
.endm

.macro restore_arguments
	restore_vectors
	movq USER_CALL_INTEGER_OFFSET(%rsp), %rdi
	movq USER_CALL_INTEGER_OFFSET + 8(%rsp), %rsi
	movq USER_CALL_INTEGER_OFFSET + 16(%rsp), %rdx
	movq USER_CALL_INTEGER_OFFSET + 24(%rsp), %rcx
	movq USER_CALL_INTEGER_OFFSET + 32(%rsp), %r8
	movq USER_CALL_INTEGER_OFFSET + 40(%rsp), %r9
	movq USER_CALL_RAX_OFFSET(%rsp), %rax
	movq USER_CALL_R10_OFFSET(%rsp), %r10
.endm

	.hidden user_vectors
	.hidden user_enter
	.hidden user_leave
	.hidden user_personality
	.type user_common, @function
	.p2align 4
user_common:
	.cfi_startproc
	/* 0x1b: indirection none, relative to the place, four bytes (DW_EH_PE_pcrel | sdata4) */
	.cfi_personality 0x1b, user_personality
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register rbp
	subq $USER_CALL_SIZE, %rsp
	movq %rdi, USER_CALL_INTEGER_OFFSET(%rsp)
	movq %rsi, USER_CALL_INTEGER_OFFSET + 8(%rsp)
	movq %rdx, USER_CALL_INTEGER_OFFSET + 16(%rsp)
	movq %rcx, USER_CALL_INTEGER_OFFSET + 24(%rsp)
	movq %r8, USER_CALL_INTEGER_OFFSET + 32(%rsp)
	movq %r9, USER_CALL_INTEGER_OFFSET + 40(%rsp)
	movq %rax, USER_CALL_RAX_OFFSET(%rsp)
	movq %r10, USER_CALL_R10_OFFSET(%rsp)
	movq %r11, USER_CALL_INDEX_OFFSET(%rsp)
	leaq 16(%rbp), %rax
	movq %rax, USER_CALL_STACK_ARGUMENTS_OFFSET(%rsp)
	movl $0, USER_CALL_REGION_OFFSET(%rsp)
	save_vectors
	movq %rsp, %rdi
	call user_enter
	movq %rax, %r11
	cmpl $0, USER_CALL_REGION_OFFSET(%rsp)
	jne 3f
	restore_arguments
	.cfi_remember_state
	leave
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	jmp *%r11
	.cfi_restore_state
3:
	restore_arguments
	/* The words in memory, from the last to the first; an odd number of them gets one more, so
	 * that the stack stays aligned. r10 is restored behind it. */
	movq USER_CALL_WORDS_OFFSET(%rsp), %r10
	testq %r10, %r10
	jz 5f
	testb $1, %r10b
	jz 4f
	subq $8, %rsp
4:
	pushq 8(%rbp, %r10, 8)
	decq %r10
	jnz 4b
5:
	movq USER_CALL_R10_OFFSET - USER_CALL_SIZE(%rbp), %r10
	call *%r11
	leaq -USER_CALL_SIZE(%rbp), %rsp
	movq %rax, USER_CALL_RAX_OFFSET(%rsp)
	movq %rdx, USER_CALL_RDX_OFFSET(%rsp)
	save_vectors
	movq %rsp, %rdi
	call user_leave
	restore_vectors
	movq USER_CALL_RAX_OFFSET(%rsp), %rax
	movq USER_CALL_RDX_OFFSET(%rsp), %rdx
	.cfi_remember_state
	leave
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	ret
	.cfi_restore_state
	.cfi_endproc
	.size user_common, . - user_common

	/* USER_ENTRY_SIZE bytes each */
	.globl user_entries
	.hidden user_entries
	.type user_entries, @function
	.p2align 4
user_entries:
	.cfi_startproc
	.set index, 0
	.rept USER_FUNCTIONS_MAX
	.p2align 4
	movl $index, %r11d
	jmp user_common
	.set index, index + 1
	.endr
	.cfi_endproc
	.size user_entries, . - user_entries

	.section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A context switch as coroutine libraries write it by hand, and the first entry of a context.
 */
	.text
/* void nasty_switch(void **save, void *load) */
	.globl nasty_switch
	.type nasty_switch, @function
nasty_switch:
	.cfi_startproc
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, (%rdi)
	mov %rsi, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret
	.cfi_endproc
	.size nasty_switch, . - nasty_switch

/* Where a new context begins: rbx = function, r12 = its argument; it never returns. */
	.globl nasty_begin
	.type nasty_begin, @function
nasty_begin:
	.cfi_startproc
	.cfi_undefined rip
	mov %r12, %rdi
	call *%rbx
	ud2
	.cfi_endproc
	.size nasty_begin, . - nasty_begin
	.section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions whose first instructions are hard to displace: too short, branched to, relative to their
 * place, reached in the middle, or with a register or flag that calls do not usually carry.
 */
	.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	.endm
	.macro ends name
	.cfi_endproc
	.size \name, . - \name
	.endm

	.text
	function as_ret
	ret
	ends as_ret

/* Round a loop whose head is the entry itself. */
	function as_loop_entry
	dec %rdi
	lea 1(%rsi), %rsi
	jnz as_loop_entry
	mov %rsi, %rax
	ret
	ends as_loop_entry

/* The head lies two bytes behind the entry. */
	function as_loop_two
	mov %esi, %eax
1:	inc %rax
	dec %rdi
	jnz 1b
	ret
	ends as_loop_two

	function as_call_first
	call as_ret
	lea 1(%rdi), %rax
	ret
	ends as_call_first

	function as_jrcxz
	mov %rdi, %rcx
	jrcxz 1f
	mov $1, %eax
	ret
1:	mov $2, %eax
	ret
	ends as_jrcxz

	function as_rip
	cmpl $5, number(%rip)
	sete %al
	movzbl %al, %eax
	add %rdi, %rax
	ret
	ends as_rip

/* The carry is an argument. */
	function as_carry
	sbb %rax, %rax
	and $7, %eax
	add %rdi, %rax
	ret
	ends as_carry

	function as_carries
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	stc
	call as_carry
	mov %rax, %rdi
	clc
	call as_carry
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	ends as_carries

	function as_table
	lea table(%rip), %rax
	and $3, %edi
	movslq (%rax,%rdi,4), %rdx
	add %rax, %rdx
	jmp *%rdx
1:	mov $10, %eax
	ret
2:	mov $20, %eax
	ret
3:	mov $30, %eax
	ret
4:	mov $40, %eax
	ret
	ends as_table
	.section .rodata
	.p2align 2
table:	.long 1b - table, 2b - table, 3b - table, 4b - table
number:	.long 5
	.text

/* Where am I? The way of old position-independent code; the call pushes what pop takes. */
	function as_where
	call 1f
1:	pop %rax
	lea as_where(%rip), %rdx
	sub %rdx, %rax
	ret
	ends as_where

/* Another function jumps into the midst of this one. */
	function as_middle
	xor %eax, %eax
	inc %rax
inside:	add $3, %rax
	ret
	ends as_middle

	function as_into_middle
	mov %rdi, %rax
	jmp inside
	ends as_into_middle

/* Reads its own return address. */
	function as_return_address
	mov (%rsp), %rax
	ret
	ends as_return_address

	function as_asks
	call as_return_address
1:	lea 1b(%rip), %rdx
	sub %rdx, %rax
	ret
	ends as_asks

	function as_short
	xchg %rdi, %rax
	ret
	ends as_short
	.byte 0x48

	.section .note.GNU-stack, "", @progbits

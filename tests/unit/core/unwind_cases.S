/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See unwind_cases.h.
 */
	.text

	.globl case_saved_below
	.type case_saved_below, @function
case_saved_below:
	.cfi_startproc
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	sub $264, %rsp
	and $-64, %rsp
	mov %rax, 152(%rsp)
	/* DW_CFA_def_cfa_expression: breg7 152, deref, plus_uconst 8 */
	.cfi_escape 0x0f,0x06,0x77,0x98,0x01,0x06,0x23,0x08
	nop
	lea 160(%rsp), %rcx
	mov %rcx, %rsp
	/* breg7 -8, deref, plus_uconst 8 */
	.cfi_escape 0x0f,0x05,0x77,0x78,0x06,0x23,0x08
	nop
	nop
	lea -160(%rsp), %rsp
	.cfi_escape 0x0f,0x06,0x77,0x98,0x01,0x06,0x23,0x08
	nop
	mov 152(%rsp), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size case_saved_below, . - case_saved_below

	.globl case_return_in_rdi
	.type case_return_in_rdi, @function
case_return_in_rdi:
	.cfi_startproc
	pop %rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rdi
	nop
	nop
	push %rdi
	.cfi_adjust_cfa_offset 8
	nop
	ret
	.cfi_endproc
	.size case_return_in_rdi, . - case_return_in_rdi

	.globl case_saved_slot
	.type case_saved_slot, @function
case_saved_slot:
	.cfi_startproc
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	mov $5, %r9d
	neg %r9
	lea -256(%rsp,%r9,8), %r10
	neg %r9
	and $-1024, %r10
	mov %r10, %rsp
	mov %rax, 8(%rsp,%r9,8)
	/* breg7 8, breg9 0, lit8, mul, plus, deref, plus_uconst 8 */
	.cfi_escape 0x0f,0x0a,0x77,0x08,0x79,0x00,0x38,0x1e,0x22,0x06,0x23,0x08
	nop
	nop
	mov 8(%rsp,%r9,8), %rsi
	.cfi_def_cfa %rsi, 8
	nop
	mov %rsi, %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	.size case_saved_slot, . - case_saved_slot

	.globl case_cfa_in_rax
	.type case_cfa_in_rax, @function
case_cfa_in_rax:
	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	xor %ebp, %ebp
	sub $1024, %rsp
	and $-256, %rsp
	nop
	mov %rax, %rsp
	.cfi_def_cfa_register %rsp
	pop %rbp
	.cfi_def_cfa_offset 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size case_cfa_in_rax, . - case_cfa_in_rax

	.globl case_cfa_in_rax_across
	.type case_cfa_in_rax_across, @function
case_cfa_in_rax_across:
	.cfi_startproc
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	sub $1000, %rsp
	and $-128, %rsp
	call leaves_rax_alone
	nop
	mov %rax, %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	.size case_cfa_in_rax_across, . - case_cfa_in_rax_across

	.type leaves_rax_alone, @function
leaves_rax_alone:
	.cfi_startproc
	push %rcx
	.cfi_adjust_cfa_offset 8
	nop
	pop %rcx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size leaves_rax_alone, . - leaves_rax_alone

	.globl case_cfa_in_rbx
	.type case_cfa_in_rbx, @function
case_cfa_in_rbx:
	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	mov %rsp, %rbx
	.cfi_def_cfa_register %rbx
	sub $1000, %rsp
	and $-64, %rsp
	call *%rdi
	mov %rbx, %rsp
	.cfi_def_cfa_register %rsp
	pop %rbx
	.cfi_def_cfa_offset 8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size case_cfa_in_rbx, . - case_cfa_in_rbx

	.globl case_leaf, case_leaf_end
	.type case_leaf, @function
case_leaf:
	xor %eax, %eax
	mov $3, %ecx
1:	add %ecx, %eax
	dec %ecx
	jnz 1b
	ret
case_leaf_end:
	.size case_leaf, . - case_leaf

	.globl case_pushed_bp, case_pushed_bp_end
	.type case_pushed_bp, @function
case_pushed_bp:
	push %rbp
	mov %rsp, %rbp
	sub $64, %rsp
	movq $0, (%rsp)
	call case_leaf
	nop
	add $64, %rsp
	pop %rbp
	ret
case_pushed_bp_end:
	.size case_pushed_bp, . - case_pushed_bp

	.globl case_wrong_cfi, case_wrong_cfi_end
	.type case_wrong_cfi, @function
case_wrong_cfi:
	.cfi_startproc
	.cfi_def_cfa_offset 0x7ffffff0
	nop
	nop
	ret
	.cfi_endproc
case_wrong_cfi_end:
	.size case_wrong_cfi, . - case_wrong_cfi

	.globl case_wrong_cfi_low, case_wrong_cfi_low_end
	.type case_wrong_cfi_low, @function
case_wrong_cfi_low:
	.cfi_startproc
	/* def_cfa_expression: breg7 -64 */
	.cfi_escape 0x0f,0x02,0x77,0x40
	nop
	nop
	ret
	.cfi_endproc
case_wrong_cfi_low_end:
	.size case_wrong_cfi_low, . - case_wrong_cfi_low

	.globl case_outermost, case_outermost_end
	.type case_outermost, @function
case_outermost:
	.cfi_startproc
	.cfi_undefined %rip
	sub $8, %rsp
	call *%rdi
	add $8, %rsp
	ret
	.cfi_endproc
case_outermost_end:
	.size case_outermost, . - case_outermost

	.globl case_restorer
	.type case_restorer, @function
	.p2align 4
case_restorer:
	mov $15, %rax
	syscall
	.size case_restorer, . - case_restorer

	.globl trace_on
	.type trace_on, @function
trace_on:
	.cfi_startproc
	pushfq
	.cfi_adjust_cfa_offset 8
	orq $0x100, (%rsp)
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size trace_on, . - trace_on

	.globl trace_off
	.type trace_off, @function
trace_off:
	.cfi_startproc
	pushfq
	.cfi_adjust_cfa_offset 8
	andq $-257, (%rsp)
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size trace_off, . - trace_off

	.section .note.GNU-stack, "", @progbits

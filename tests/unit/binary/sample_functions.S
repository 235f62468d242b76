/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions whose names say why they are left alone: reason_what, where `reason` is the word of
 * plan_reason_to_word() with _ for -.
 */
	.text

.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
.endm

.macro done name
	.cfi_endproc
	.size \name, . - \name
.endm

function patchable_plain
	pushq %rbp
	.cfi_def_cfa_offset 16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	movl %edi, %eax
	popq %rbp
	.cfi_def_cfa %rsp, 8
	ret
done patchable_plain

/* One byte and padding. */
function patchable_empty
	ret
done patchable_empty

function patchable_endbr
	endbr64
	movl $1, %eax
	ret
done patchable_endbr

/* The call is last: it returns behind the patch. */
function patchable_call
	subq $8, %rsp
	.cfi_def_cfa_offset 16
	call patchable_plain
	addq $8, %rsp
	.cfi_def_cfa_offset 8
	ret
done patchable_call

function patchable_fence
	lock orl $0, (%rsp)
	ret
done patchable_fence

/* The stack pointer in another register, as in hand-written kernels of libcrypto. */
function patchable_aligned_frame
	leaq (%rsp), %rax
	.cfi_def_cfa_register %rax
	subq $64, %rsp
	andq $-64, %rsp
	movq %rdi, (%rsp)
	leaq (%rax), %rsp
	.cfi_def_cfa_register %rsp
	ret
done patchable_aligned_frame

/* Arguments on the stack lie behind the return address. */
function patchable_stack_argument
	movq 8(%rsp), %rax
	ret
done patchable_stack_argument

/* Only jumped to, by two. */
	.p2align 4
	.type patchable_tail, @function
patchable_tail:
	.cfi_startproc
	movl %edi, %eax
	addl $1, %eax
	ret
done patchable_tail

function patchable_jumper
	addl $1, %edi
	jmp patchable_tail
done patchable_jumper

function patchable_other_jumper
	addl $2, %edi
	jmp patchable_tail
done patchable_other_jumper

function target_second_instruction
	xorl %eax, %eax
1:	addl $1, %eax
	cmpl %edi, %eax
	jb 1b
	ret
done target_second_instruction

/* Would enter the stub each time round. */
function target_loop_to_entry
	subl $1, %edi
	jnz target_loop_to_entry
	ret
done target_loop_to_entry

/* The landing place of somebody else. */
function target_from_outside
	nop
target_inside:
	nop
	movl $2, %eax
	ret
done target_from_outside

function patchable_to_middle
	addl $4, %edi
	jmp target_inside
done patchable_to_middle

	.globl short_neighbour
	.type short_neighbour, @function
	.p2align 4
short_neighbour:
	.cfi_startproc
	nop
	ret
done short_neighbour
	.globl patchable_neighbour
	.type patchable_neighbour, @function
patchable_neighbour:
	.cfi_startproc
	movl $3, %eax
	ret
done patchable_neighbour

/* It returns into the patch. */
function unrelocatable_early_call
	call *%rax
	xorl %eax, %eax
	ret
done unrelocatable_early_call

function undecodable_byte
	movl $4, %eax
	ret
	.byte 0x06
done undecodable_byte

function reads_return_directly
	movq (%rsp), %rax
	ret
done reads_return_directly

function reads_return_in_frame
	pushq %rbx
	.cfi_def_cfa_offset 16
	pushq %rbp
	.cfi_def_cfa_offset 24
	movq 16(%rsp), %rax
	popq %rbp
	.cfi_def_cfa_offset 16
	popq %rbx
	.cfi_def_cfa_offset 8
	ret
done reads_return_in_frame

function reads_return_by_pop
	popq %rcx
	.cfi_def_cfa_offset 0
	jmp *%rcx
done reads_return_by_pop

function reads_return_context_switch
	pushq %rbx
	.cfi_def_cfa_offset 16
	movq %rsp, (%rdi)
	movq (%rsi), %rsp
	popq %rbx
	.cfi_def_cfa_offset 8
	ret
done reads_return_context_switch

/* Takes the caller's argument as well. */
function reads_return_callee_pops
	movl $5, %eax
	ret $8
done reads_return_callee_pops

function no_return_address_signal
	.cfi_signal_frame
	movl $15, %eax
	syscall
done no_return_address_signal

function no_return_address_undefined
	.cfi_undefined %rip
	movl $60, %eax
	syscall
done no_return_address_undefined

/* Cold code of a function with a frame. */
	.p2align 4
fragment_of_frame:
	.cfi_startproc
	.cfi_def_cfa_offset 32
	movl $6, %eax
	addq $24, %rsp
	.cfi_def_cfa_offset 8
	ret
done fragment_of_frame

function returns_twice_wrapper
	xorl %esi, %esi
	jmp __sigsetjmp@PLT
done returns_twice_wrapper

function returns_twice_wrapper_of_wrapper
	movl $7, %esi
	jmp returns_twice_wrapper
done returns_twice_wrapper_of_wrapper

/* Not only by the name. */
	.globl returns_twice_alias
	.set returns_twice_alias, vfork
function vfork
	movl $58, %eax
	syscall
	jmp *%rdi
done vfork

function unwinder__
	.globl _Unwind_Sample
	.set _Unwind_Sample, unwinder__
	movl $8, %eax
	ret
done unwinder__

	.globl resolver_chooses
	.type resolver_chooses, @gnu_indirect_function
	.p2align 4
resolver_chooses:
	.cfi_startproc
	leaq patchable_plain(%rip), %rax
	ret
done resolver_chooses

/* Who jumps to what looks at its caller is seen by it instead of its own caller. */
function reads_return_by_import
	jmp dlsym@PLT
done reads_return_by_import

function reads_return_by_pointer
	jmp *dlvsym@GOTPCREL(%rip)
done reads_return_by_pointer

function reads_return_by_two_jumps
	movl $1, %esi
	jmp reads_return_by_import
done reads_return_by_two_jumps

function reads_return_if_nonzero
	testl %edi, %edi
	jne reads_return_by_two_jumps
	movl $1, %eax
	ret
done reads_return_if_nonzero

function patchable_calls_dlsym
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	call dlsym@PLT
	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
done patchable_calls_dlsym

/* Code that is read, copied, or entered at a calculated place. */
	.macro plain name
function \name
	leal (%rdi,%rdi,2), %eax
	addl $12, %eax
	ret
done \name
	.endm
	plain used_as_data_read
	plain used_as_data_first
	plain used_as_data_between
	plain used_as_data_last
	plain used_as_data_copied
	plain used_as_data_entered_inside
	plain used_as_data_page
	plain used_as_data_spilled
	plain patchable_passed_on
	plain patchable_compared

function patchable_reads_code
	movdqu used_as_data_read(%rip), %xmm0
	movups %xmm0, (%rdi)
	ret
done patchable_reads_code

function patchable_measures_code
	leaq used_as_data_first(%rip), %rcx
	leaq used_as_data_last(%rip), %rax
	subq %rcx, %rax
	ret
done patchable_measures_code

function patchable_copies_code
	leaq used_as_data_copied(%rip), %rax
	movl $10, %edx
	movq %rax, %rsi
	jmp memcpy@PLT
done patchable_copies_code

function patchable_enters_inside
	leaq used_as_data_entered_inside(%rip), %rax
	leaq 3(%rax,%rdi), %rax
	jmp *%rax
done patchable_enters_inside

function patchable_finds_page
	leaq used_as_data_page(%rip), %rdi
	andq $-4096, %rdi
	jmp mprotect@PLT
done patchable_finds_page

function patchable_spills
	subq $24, %rsp
	.cfi_adjust_cfa_offset 24
	leaq used_as_data_spilled(%rip), %rax
	movq %rax, 8(%rsp)
	xorl %eax, %eax
	movq 8(%rsp), %rcx
	movzbl (%rcx), %eax
	addq $24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
done patchable_spills

/* What is passed to others, compared, or loses its register to something else. */
function patchable_passes_on
	leaq patchable_passed_on(%rip), %rdi
	leaq patchable_compared(%rip), %rsi
	cmpq %rsi, %rdi
	je 1f
	movq %rdx, %rdi
	addq $8, %rdi
1:	jmp qsort@PLT
done patchable_passes_on

/* The large model's way to its data. */
function patchable_large_model
	leaq patchable_large_model(%rip), %rax
	movabsq $64, %rcx
	addq %rcx, %rax
	ret
done patchable_large_model

/* No unwind tables at all, beside others that have some. */
	.globl no_frame_bare
	.type no_frame_bare, @function
	.p2align 4
no_frame_bare:
	pushq %rbx
	movl %edi, %ebx
	movl %ebx, %eax
	popq %rbx
	ret
	.size no_frame_bare, . - no_frame_bare

	.globl no_frame_reads_return
	.type no_frame_reads_return, @function
	.p2align 4
no_frame_reads_return:
	pushq %rbx
	movq 8(%rsp), %rax
	popq %rbx
	ret
	.size no_frame_reads_return, . - no_frame_reads_return

	.globl overlaps_second_entry
	.type overlaps_second_entry, @function
function patchable_with_second_entry
	movl $9, %eax
	ret
overlaps_second_entry:
	movl $10, %eax
	ret
	.size overlaps_second_entry, . - overlaps_second_entry
done patchable_with_second_entry

/* Something that holds the inside of a function. */
	.data
	.p2align 3
	.quad patchable_plain

	.section .note.GNU-stack, "", @progbits

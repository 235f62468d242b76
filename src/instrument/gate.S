/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The gate code: what stubs call at the entry and exit of functions (kymo/plan.h, shadow.h).
 *
 * It is copied into the gate pages of every arena and reaches the arena's data and constants by
 * their distance from itself, so nothing here may be relocated. Callers may have anything in any
 * register and in the flags (-fipa-ra, hand-written assembly): all are kept, vector registers are
 * not touched. No red zone is live where functions begin and end.
 *
 * An event reserves its word by one instruction (xadd), and a shadow entry by another, so that a
 * signal handler that runs in between finds everything in order.
 *
 * struct calls_thread: 0 top, 8 limit, 16 at, 24 end, 32 counts.
 * struct shadow_entry (24 bytes): 0 return address, 8 slot, 16 id.
 */
#define DATA(at)     gate_begin - 4096 + (at)(%rip)
#define CONSTANT(at) gate_begin + 8192 - 128 + (at)(%rip)
#define GATE          DATA(0)
#define ID_BASE       CONSTANT(0)
#define THREAD_OFFSET CONSTANT(8)
#define ENTRY_SLOW    CONSTANT(16)
#define EXIT_SLOW     CONSTANT(24)
#define COUNT_SLOW    CONSTANT(32)
#define FOREIGN_LOW   CONSTANT(48)
#define FOREIGN_SIZE  CONSTANT(56)
#define GATE_FAST     1
#define SKIPPED       51 /* PLAN_STUB_SKIPPED */

	.section .text.kymo_gate, "ax", @progbits
	.globl	instrument_gate_begin
	.hidden	instrument_gate_begin
	.globl	instrument_gate_end
	.hidden	instrument_gate_end
	.p2align 6
instrument_gate_begin:
gate_begin:
	.cfi_startproc

/* Unwind tables: the CFA is so far above rsp, or above rsp before enter_c. */
	.macro	frame above
	.cfi_def_cfa %rsp, \above
	.cfi_restore %rbp
	.endm
	.macro	frame_c above
	.cfi_def_cfa %rbp, 64 + \above
	.cfi_offset %rbp, -56 - \above
	.endm

/* Keeps flags but DF, which nothing here looks at. */
	.macro	save_flags
	push	%rax
	.cfi_adjust_cfa_offset 8
	lahf
	seto	%al
	push	%rax
	.cfi_adjust_cfa_offset 8
	.endm
	.macro	restore_flags
	pop	%rax
	.cfi_adjust_cfa_offset -8
	add	$0x7f, %al		/* sets OF again if it was set */
	sahf
	pop	%rax
	.cfi_adjust_cfa_offset -8
	.endm

/* All other registers that C functions may change, and DF, which they rely on. */
	.macro	enter_c
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%r8
	.cfi_adjust_cfa_offset 8
	push	%r9
	.cfi_adjust_cfa_offset 8
	push	%r10
	.cfi_adjust_cfa_offset 8
	push	%r11
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	pushfq
	.cfi_adjust_cfa_offset 8
	cld
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	.endm
	.macro	leave_c
	mov	%rbp, %rsp
	.cfi_def_cfa_register %rsp
	popfq
	.cfi_adjust_cfa_offset -8
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	pop	%r11
	.cfi_adjust_cfa_offset -8
	pop	%r10
	.cfi_adjust_cfa_offset -8
	pop	%r9
	.cfi_adjust_cfa_offset -8
	pop	%r8
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	.endm

/* ---- entry: 0 return to the stub, 8 number, 16 rcx, 24 the function's return address ---- */
gate_entry:
	save_flags
	push	%rdx			/* 0 rdx, 8 flags, 16 rax, 24 return, 32 number, 40 rcx, 48 slot */
	.cfi_adjust_cfa_offset 8
	mov	THREAD_OFFSET, %rdx
	mov	%fs:0(%rdx), %rcx
	cmp	%fs:8(%rdx), %rcx
	jae	entry_slow
	lea	48(%rsp), %rax
	cmp	%rax, -16(%rcx)		/* the entry before lies further out on this stack? */
	jbe	entry_slow
	mov	48(%rsp), %rax
	sub	FOREIGN_LOW, %rax
	cmp	FOREIGN_SIZE, %rax
	jb	entry_slow
	addq	$24, %fs:0(%rdx)
	mov	48(%rsp), %rax
	mov	%rax, (%rcx)
	mov	32(%rsp), %eax
	add	ID_BASE, %eax
	mov	%rax, 16(%rcx)
	lea	48(%rsp), %rax
	mov	%rax, 8(%rcx)		/* last: the entry is valid by its slot */
	mov	16(%rcx), %eax
	add	%eax, %eax
	mov	%rax, 32(%rsp)
	mov	$8, %ecx
	xadd	%rcx, %fs:16(%rdx)
	cmp	%fs:24(%rdx), %rcx
	jae	entry_full
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	shl	$21, %rax
	or	32(%rsp), %rax
	mov	%rax, (%rcx)
entry_done:
	mov	40(%rsp), %rcx		/* which the stub has pushed and drops */
	frame	32
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	restore_flags
	ret

/* No room for the word: it is passed on without its time. */
entry_full:
	frame	32
	enter_c
	mov	96(%rsp), %rdi		/* 32 + 8 * 8 */
	jmp	write_word

	.p2align 4
entry_slow:
	frame	32
	enter_c
	lea	112(%rsp), %rdi		/* 48 + 8 * 8: the slot */
	mov	96(%rsp), %esi
	add	ID_BASE, %esi
	mov	%rsp, %rdx		/* struct calls_registers */
	and	$-16, %rsp
	call	*ENTRY_SLOW
	leave_c
	test	%eax, %eax
	jz	entry_done
	mov	24(%rsp), %rax		/* not recorded: go on behind the call that brings the exit */
	lea	SKIPPED(%rax), %rax
	mov	%rax, 24(%rsp)
	jmp	entry_done

/* ---- exit: 0 return to the stub, 8 number, 16 room for the return address (the slot) ---- */
	.org	gate_begin - instrument_gate_begin + 0x400, 0xcc
gate_exit:
	frame	8
	push	%rcx
	.cfi_adjust_cfa_offset 8
	save_flags
	push	%rdx
	.cfi_adjust_cfa_offset 8
	push	%rsi			/* 0 rsi, 8 rdx, 16 flags, 24 rax, 32 rcx, 40 return, 48 number,
					   56 slot */
	.cfi_adjust_cfa_offset 8
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	shl	$21, %rax
	mov	THREAD_OFFSET, %rdx
	mov	%fs:0(%rdx), %rcx
	lea	56(%rsp), %rsi
	cmp	%rsi, -16(%rcx)
	jne	exit_slow
	cmpq	$GATE_FAST, GATE
	jne	exit_slow
	mov	-24(%rcx), %rsi
	mov	%rsi, 56(%rsp)		/* the true return address */
	mov	-8(%rcx), %esi
	lea	1(%rsi,%rsi), %rsi
	or	%rsi, %rax
	movq	$0, -16(%rcx)		/* entries above the top have no slot */
	sub	$24, %rcx
	mov	%rcx, %fs:0(%rdx)
	mov	$8, %ecx
	xadd	%rcx, %fs:16(%rdx)
	cmp	%fs:24(%rdx), %rcx
	jae	exit_full
	mov	%rax, (%rcx)
exit_done:
	frame	48
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	restore_flags
	pop	%rcx
	.cfi_adjust_cfa_offset -8
	ret

exit_full:
	frame	48
	mov	(%rsp), %rsi		/* as entry_full leaves it: without the rsi saved here */
	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	mov	%rax, 40(%rsp)		/* in the place of the number */
	enter_c
	mov	104(%rsp), %rdi		/* 40 + 8 * 8 */
	jmp	write_word_exit

	.p2align 4
exit_slow:
	frame	48
	mov	(%rsp), %rsi
	lea	8(%rsp), %rsp		/* 0 rdx, 8 flags, 16 rax, 24 rcx, 32 return, 40 number, 48 slot */
	.cfi_adjust_cfa_offset -8
	enter_c
	lea	112(%rsp), %rdi
	mov	104(%rsp), %esi
	add	ID_BASE, %esi
	mov	%rsp, %rdx
	and	$-16, %rsp
	call	*EXIT_SLOW
	leave_c
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	restore_flags
	pop	%rcx
	.cfi_adjust_cfa_offset -8
	ret

/* ---- count: 0 return to the stub, 8 number, 16 rcx ---- */
	.org	gate_begin - instrument_gate_begin + 0x800, 0xcc
gate_count:
	frame	8
	save_flags
	push	%rdx			/* 0 rdx, 8 flags, 16 rax, 24 return, 32 number */
	.cfi_adjust_cfa_offset 8
	mov	THREAD_OFFSET, %rdx
	mov	%fs:32(%rdx), %rcx
	test	%rcx, %rcx
	jz	count_slow
	mov	32(%rsp), %eax
	add	ID_BASE, %eax
	incq	(%rcx,%rax,8)
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	restore_flags
	ret

count_slow:
	frame	32
	enter_c
	mov	96(%rsp), %edi
	add	ID_BASE, %edi
	and	$-16, %rsp
	call	*COUNT_SLOW
	leave_c
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	restore_flags
	ret

/* The slow function takes a word instead of an id where the slot is NULL. */
write_word:
	frame_c	32
	mov	%rdi, %rsi
	xor	%edi, %edi
	and	$-16, %rsp
	call	*ENTRY_SLOW
	leave_c
	jmp	entry_done

write_word_exit:
	frame_c	40
	mov	%rdi, %rsi
	xor	%edi, %edi
	and	$-16, %rsp
	call	*EXIT_SLOW
	leave_c
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	restore_flags
	pop	%rcx
	.cfi_adjust_cfa_offset -8
	ret

	.cfi_endproc
instrument_gate_end:
	.section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The trampoline code: what stubs call at the entry and exit of functions (kymo/plan.h, shadow.h).
 *
 * It is copied into the trampoline pages of every arena and reaches the arena's data and constants by
 * their distance from itself, so nothing here may be relocated. Callers may have anything in any
 * register and in the flags (-fipa-ra, hand-written assembly): all are kept, vector registers are
 * not touched. No red zone is live where functions begin and end, and none below what a stub has
 * pushed: registers are kept below rsp, where signal handlers do not come (System V ABI 3.2.2).
 *
 * Time stamps are most of what a call costs, and the processor does next to nothing beside them:
 * every instruction counts. The entry's is taken last, the exit's when all but storing it is done.
 *
 * An event reserves its word by one instruction (xadd), and a shadow entry by another, so that a
 * signal handler that runs in between finds everything in order.
 *
 * struct calls_thread_state: 0 top, 8 limit, 16 at, 24 end, 32 counts.
 * struct shadow_entry (24 bytes): 0 return address, 8 slot, 16 id.
 */
#define DATA(at)     trampoline_begin - 4096 + (at)(%rip)
#define CONSTANT(at) trampoline_begin + 8192 - 128 + (at)(%rip)
#define GATE          DATA(0)
#define ID_BASE       CONSTANT(0)
#define THREAD_OFFSET CONSTANT(8)
#define ENTRY_SLOW    CONSTANT(16)
#define EXIT_SLOW     CONSTANT(24)
#define COUNT_SLOW    CONSTANT(32)
#define FOREIGN_LOW   CONSTANT(48)
#define FOREIGN_SIZE  CONSTANT(56)
#define STUBS_SIZE    CONSTANT(64)
#define ENTRY_SUMS    CONSTANT(80)
#define EXIT_SUMS     CONSTANT(88)
#define SUM_DECLINED  1 /* enum calls_sum_result */
#define RESERVED_EVENTS -1 /* CALLS_RESERVED_EVENTS */
#define STUBS         trampoline_begin + 8192(%rip)
#define NUMBER_AT_EXIT 6 /* PLAN_STUB_NUMBER - PLAN_STUB_EXIT */
#define GATE_FAST     1
#define DIRECTION_FLAG 0x400
#define SKIPPED       31 /* PLAN_STUB_SKIPPED - PLAN_STUB_RETURN */

	.section .text.kymo_trampoline, "ax", @progbits
	.globl	instrument_trampoline_begin
	.hidden	instrument_trampoline_begin
	.globl	instrument_trampoline_end
	.hidden	instrument_trampoline_end
	.p2align 6
instrument_trampoline_begin:
trampoline_begin:
	.cfi_startproc

/* Unwind tables: the CFA is so far above rsp. */
	.macro	frame above
	.cfi_def_cfa %rsp, \above
	.cfi_restore %rbp
	.endm

/* rax, the flags but DF, which nothing here looks at, and rdx, in the places below rsp that are so
 * far from it: where pushing them would put them. */
	.macro	save rax, status, rdx
	mov	%rax, \rax(%rsp)
	lahf
	seto	%al
	mov	%rax, \status(%rsp)
	mov	%rdx, \rdx(%rsp)
	.endm
	.macro	restore rax, status, rdx
	mov	\status(%rsp), %rax
	mov	\rdx(%rsp), %rdx
	add	$0x7f, %al		/* sets OF again if it was set */
	sahf
	mov	\rax(%rsp), %rax
	.endm
/* The time, in rax, where a word has it. */
	.macro	stamp
	rdtsc
	shl	$53, %rdx
	shl	$21, %rax
	or	%rdx, %rax
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
	/* popfq takes longer than all else here, and what C leaves as it was is not restored. */
	testl	$DIRECTION_FLAG, (%rsp)
	jz	.Lforwards\@
	std
.Lforwards\@:
	lea	8(%rsp), %rsp
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

/* A function that sums the call up in place and keeps all registers but rax, which says how that
 * went: \way is taken where it declined. */
	.macro	try_sum way, function:vararg
	frame	8
	lea	-48(%rsp), %rsp
	frame	56
	mov	%rdi, (%rsp)
	mov	%rsi, 8(%rsp)
	lea	64(%rsp), %rdi		/* 16 + 48: the slot */
	mov	56(%rsp), %esi
	add	ID_BASE, %esi
	call	*\function
	mov	8(%rsp), %rsi
	mov	(%rsp), %rdi
	lea	48(%rsp), %rsp
	frame	8
	cmp	$SUM_DECLINED, %eax
	je	\way
	.endm
/* ---- entry: 0 return to the stub, 8 number, 16 the function's return address (the slot); below:
 * -8 rcx, -16 rax, -24 flags, -32 rdx, -40 the word without its time ---- */
trampoline_entry:
	save	-16, -24, -32
	mov	THREAD_OFFSET, %rdx
	mov	%fs:0(%rdx), %rcx
	cmp	%fs:8(%rdx), %rcx
	jae	entry_slow
	lea	16(%rsp), %rax
	cmp	%rax, -16(%rcx)		/* the entry before lies further out on this stack? */
	jbe	entry_tail
	.globl	instrument_trampoline_foreign
	.hidden	instrument_trampoline_foreign
instrument_trampoline_foreign:		/* jb, never; where code is foreign, arena.c makes it ja */
	.byte	0x0f, 0x82
	.long	entry_foreign - entry_own
entry_own:
	mov	16(%rsp), %rax
	mov	$24, %ecx		/* a handler may have given the thread its stack meanwhile */
	xadd	%rcx, %fs:0(%rdx)
	mov	%rax, (%rcx)
	mov	8(%rsp), %eax
	add	ID_BASE, %eax
	mov	%rax, 16(%rcx)
	add	%eax, %eax
	mov	%rax, -40(%rsp)
	lea	16(%rsp), %rax
	mov	%rax, 8(%rcx)		/* last: the entry is valid by its slot */
	mov	$8, %ecx
	xadd	%rcx, %fs:16(%rdx)
	cmp	%fs:24(%rdx), %rcx
	jae	entry_full
	stamp
	or	-40(%rsp), %rax
	mov	%rax, (%rcx)
entry_done:
	mov	-8(%rsp), %rcx
	restore	-16, -24, -32
	ret

/* The entry before has the same slot: its function jumped here, if the slot has the way back into
 * its stub, where its number stands 6 bytes on (kymo/plan.h). Its call ends, and its shadow entry
 * goes over to this one: two words, of which -40 and -48 have what is not the time. */
entry_tail:
	jne	entry_slow
	mov	16(%rsp), %rax
	lea	STUBS, %rdx
	sub	%rdx, %rax
	cmp	STUBS_SIZE, %rax
	jae	entry_slow
	mov	NUMBER_AT_EXIT(%rdx,%rax), %eax
	add	ID_BASE, %eax
	cmp	%rax, -8(%rcx)		/* id, and no flags */
	jne	entry_slow
	mov	THREAD_OFFSET, %rdx
	mov	$16, %ecx
	xadd	%rcx, %fs:16(%rdx)
	lea	8(%rcx), %rax
	cmp	%fs:24(%rdx), %rax
	jae	entry_slow
	mov	%fs:0(%rdx), %rax
	mov	-8(%rax), %edx
	lea	1(%rdx,%rdx), %rdx
	mov	%rdx, -40(%rsp)
	mov	8(%rsp), %edx
	add	ID_BASE, %edx
	mov	%rdx, -8(%rax)
	add	%edx, %edx
	mov	%rdx, -48(%rsp)
	stamp
	mov	%rax, %rdx
	or	-40(%rsp), %rax
	mov	%rax, (%rcx)
	or	-48(%rsp), %rdx
	mov	%rdx, 8(%rcx)
	jmp	entry_done

entry_foreign:
	mov	16(%rsp), %rax
	sub	FOREIGN_LOW, %rax
	cmp	FOREIGN_SIZE, %rax
	jae	entry_own
	jmp	entry_slow

/* No room for the word: it is passed on without its time, and NULL for the slot. So is that signal
 * handlers have reserved events while the call was summed up. */
entry_full:
	mov	-40(%rsp), %rax
	mov	%rax, 8(%rsp)		/* in the place of the number */
entry_without_slot:
	lea	-32(%rsp), %rsp
	frame	40
	enter_c
	mov	104(%rsp), %rsi		/* 40 + 8 * 8 */
	xor	%edi, %edi
	and	$-16, %rsp
	call	*ENTRY_SLOW
	leave_c
	lea	32(%rsp), %rsp
	frame	8
	jmp	entry_done

/* From entry_c on 0 rdx, 8 flags, 16 rax, 24 rcx, 32 return, 40 number, 48 slot. */
	.p2align 4
entry_slow:
	mov	16(%rsp), %rax		/* foreign code is the slow way's */
	sub	FOREIGN_LOW, %rax
	cmp	FOREIGN_SIZE, %rax
	jb	entry_c
	try_sum	entry_c, ENTRY_SUMS
	jb	entry_done
	movq	$RESERVED_EVENTS, 8(%rsp)
	jmp	entry_without_slot
entry_c:
	frame	8
	lea	-32(%rsp), %rsp
	frame	40
	enter_c
	lea	112(%rsp), %rdi		/* 48 + 8 * 8: the slot */
	mov	104(%rsp), %esi
	add	ID_BASE, %esi
	mov	%rsp, %rdx		/* struct calls_saved_registers */
	and	$-16, %rsp
	call	*ENTRY_SLOW
	leave_c
	lea	32(%rsp), %rsp
	frame	8
	test	%eax, %eax
	jz	entry_done
	mov	(%rsp), %rax		/* not recorded: go on behind the call that brings the exit */
	lea	SKIPPED(%rax), %rax
	mov	%rax, (%rsp)
	jmp	entry_done

/* ---- exit: as at entry, but rcx is not kept yet; the slot is room for the return address ---- */
	.org	trampoline_begin - instrument_trampoline_begin + 0x400, 0xcc
trampoline_exit:
	frame	8
	save	-16, -24, -32
	mov	%rcx, -8(%rsp)
	mov	THREAD_OFFSET, %rdx
	mov	%fs:0(%rdx), %rcx
	lea	16(%rsp), %rax
	cmp	%rax, -16(%rcx)
	jne	exit_slow
	cmpq	$GATE_FAST, GATE
	jne	exit_slow
	mov	-24(%rcx), %rax
	mov	%rax, 16(%rsp)		/* the true return address */
	mov	-8(%rcx), %eax
	lea	1(%rax,%rax), %rax
	mov	%rax, -40(%rsp)
	movq	$0, -16(%rcx)		/* entries above the top have no slot */
	sub	$24, %rcx
	mov	%rcx, %fs:0(%rdx)
	mov	$8, %ecx
	xadd	%rcx, %fs:16(%rdx)
	cmp	%fs:24(%rdx), %rcx
	jae	exit_full
	stamp
	or	-40(%rsp), %rax
	mov	%rax, (%rcx)
exit_done:
	mov	-8(%rsp), %rcx
	restore	-16, -24, -32
	ret

exit_full:
	mov	-40(%rsp), %rax
	mov	%rax, 8(%rsp)		/* in the place of the number */
exit_without_slot:
	lea	-32(%rsp), %rsp
	frame	40
	enter_c
	mov	104(%rsp), %rsi		/* 40 + 8 * 8 */
	xor	%edi, %edi
	and	$-16, %rsp
	call	*EXIT_SLOW
	leave_c
	lea	32(%rsp), %rsp
	frame	8
	jmp	exit_done

/* From exit_c on as from entry_c on. */
	.p2align 4
exit_slow:
	try_sum	exit_c, EXIT_SUMS
	jb	exit_done
	movq	$RESERVED_EVENTS, 8(%rsp)
	jmp	exit_without_slot
exit_c:
	frame	8
	lea	-32(%rsp), %rsp
	frame	40
	enter_c
	lea	112(%rsp), %rdi
	mov	104(%rsp), %esi
	add	ID_BASE, %esi
	mov	%rsp, %rdx
	and	$-16, %rsp
	call	*EXIT_SLOW
	leave_c
	lea	32(%rsp), %rsp
	frame	8
	jmp	exit_done

/* ---- count: 0 return to the stub, 8 number; rcx: 16 for loops and blocks, -8 for functions, which
 * come here only when the thread has no counts yet; below: -16 rax, -24 flags, -32 rdx ---- */
	.org	trampoline_begin - instrument_trampoline_begin + 0x800, 0xcc
gate_count:
	frame	8
	save	-16, -24, -32
	mov	THREAD_OFFSET, %rdx
	mov	%fs:32(%rdx), %rcx
	test	%rcx, %rcx
	jz	count_slow
	mov	8(%rsp), %eax
	add	ID_BASE, %eax
	incq	(%rcx,%rax,8)
	restore	-16, -24, -32
	ret

/* From here on as from entry_c on. */
count_slow:
	lea	-32(%rsp), %rsp
	frame	40
	enter_c
	mov	104(%rsp), %edi
	add	ID_BASE, %edi
	and	$-16, %rsp
	call	*COUNT_SLOW
	leave_c
	lea	32(%rsp), %rsp
	frame	8
	restore	-16, -24, -32
	ret

	.cfi_endproc
instrument_trampoline_end:
	.section .note.GNU-stack, "", @progbits

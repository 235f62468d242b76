/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See return_frame.h. What PTRACE_GETREGSET gives as NT_X86_XSTATE has the layout that the frame
 * wants; only the words that say how long it is are missing (struct _fpx_sw_bytes).
 */
#include "inject/return_frame.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define RESTART_BLOCK  516 /* -ERESTART_RESTARTBLOCK and its like (linux/errno.h) */
#define RESTART_SYS    512
#define RESTART_NOINTR 513
#define RESTART_NOHAND 514

#define FRAME_HAS_XSTATE      1u /* uc_flags: UC_FP_XSTATE */
#define FRAME_KEEPS_SEGMENT   6u /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define ALTSTACK_LEFT_ALONE   7u /* a mode that there is not: sigaltstack fails and is ignored */
#define XSTATE_MAGIC_BEGIN    0x46505853u
#define XSTATE_MAGIC_END      0x46505845u
#define XSTATE_SOFTWARE_WORDS 464
#define FXSAVE_SIZE           512

struct kernel_ucontext {
	uint64_t flags, link;
	uint64_t stack_address;
	uint32_t stack_flags, padding;
	uint64_t stack_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip,
		eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, cr2, vector_state, reserved[8];
	uint64_t mask;
};

struct software_words {
	uint32_t magic, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};

/* As the kernel does it when no handler runs. */
static void go_on(struct kernel_ucontext *context, uint64_t number)
{
	if ((int64_t)number < 0)
		return;
	switch (-(int64_t)context->rax) {
	case RESTART_SYS:
	case RESTART_NOINTR:
	case RESTART_NOHAND:
		context->rax = number;
		context->rip -= 2;
		break;
	case RESTART_BLOCK: /* rt_sigreturn forgets what was left to wait for */
		context->rax = (uint64_t)-EINTR;
		break;
	default:
		break;
	}
}

static void put_vector_state(uint8_t *to, const struct tracee *tracee)
{
	struct software_words words = {.magic = XSTATE_MAGIC_BEGIN};
	uint32_t end = XSTATE_MAGIC_END;

	memcpy(to, tracee->vector, tracee->vector_size);
	if (tracee->vector_size <= FXSAVE_SIZE)
		return;
	memcpy(&words.features, tracee->vector + XSTATE_SOFTWARE_WORDS, sizeof(words.features));
	words.size = (uint32_t)tracee->vector_size;
	words.extended_size = words.size + (uint32_t)sizeof(end);
	memcpy(to + XSTATE_SOFTWARE_WORDS, &words, sizeof(words));
	memcpy(to + tracee->vector_size, &end, sizeof(end));
}

uint64_t return_frame_make(uint8_t frame[RETURN_FRAME_SIZE], uint64_t address,
			   const struct tracee *tracee)
{
	const struct user_regs_struct *from = &tracee->registers;
	struct kernel_ucontext context = {
		.flags = FRAME_KEEPS_SEGMENT,
		.stack_flags = ALTSTACK_LEFT_ALONE,
		.r8 = from->r8,
		.r9 = from->r9,
		.r10 = from->r10,
		.r11 = from->r11,
		.r12 = from->r12,
		.r13 = from->r13,
		.r14 = from->r14,
		.r15 = from->r15,
		.rdi = from->rdi,
		.rsi = from->rsi,
		.rbp = from->rbp,
		.rbx = from->rbx,
		.rdx = from->rdx,
		.rax = from->rax,
		.rcx = from->rcx,
		.rsp = from->rsp,
		.rip = from->rip,
		.eflags = from->eflags,
		.cs = (uint16_t)from->cs,
		.ss = (uint16_t)from->ss,
		.vector_state = address,
		.mask = tracee->mask,
	};
	/* vector state | return address | context */
	uint64_t at = RETURN_FRAME_SIZE - 64 - sizeof(context);

	at &= ~63ull;
	go_on(&context, from->orig_rax);
	if (tracee->vector_size > FXSAVE_SIZE)
		context.flags |= FRAME_HAS_XSTATE;
	memset(frame, 0, RETURN_FRAME_SIZE);
	put_vector_state(frame, tracee);
	memcpy(frame + at, &context, sizeof(context));
	/* The kernel takes the frame to begin 8 bytes below the stack pointer, with the return
	 * address that the handler's `ret` has taken off. */
	return address + at;
}

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

#define RESTART_BLOCK_ERRNO 516 /* -ERESTART_RESTARTBLOCK and its like (linux/errno.h) */
#define ERESTARTSYS         512
#define ERESTARTNOINTR      513
#define ERESTARTNOHAND      514

#define UC_FLAG_FP_XSTATE             1u /* uc_flags: UC_FP_XSTATE */
#define UC_FLAGS_STRICT_SS            6u /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define ALTSTACK_INVALID_FLAGS        7u /* a mode that there is not: sigaltstack fails and is ignored */
#define XSTATE_MAGIC_BEGIN            0x46505853u
#define XSTATE_MAGIC_END              0x46505845u
#define XSTATE_SOFTWARE_HEADER_OFFSET 464
#define FXSAVE_SIZE                   512

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

struct xstate_software_header {
	uint32_t magic, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};

/* As the kernel does it when no handler runs. */
static void prepare_syscall_restart(struct kernel_ucontext *context, uint64_t number)
{
	if ((int64_t)number < 0)
		return;
	switch (-(int64_t)context->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		context->rax = number;
		context->rip -= 2;
		break;
	case RESTART_BLOCK_ERRNO: /* rt_sigreturn forgets what was left to wait for */
		context->rax = (uint64_t)-EINTR;
		break;
	default:
		break;
	}
}

static void write_vector_state(uint8_t *to, const struct tracee *tracee)
{
	struct xstate_software_header words = {.magic = XSTATE_MAGIC_BEGIN};
	uint32_t end = XSTATE_MAGIC_END;

	memcpy(to, tracee->vector_state, tracee->vector_state_bytes);
	if (tracee->vector_state_bytes <= FXSAVE_SIZE)
		return;
	memcpy(&words.features, tracee->vector_state + XSTATE_SOFTWARE_HEADER_OFFSET,
	       sizeof(words.features));
	words.size = (uint32_t)tracee->vector_state_bytes;
	words.extended_size = words.size + (uint32_t)sizeof(end);
	memcpy(to + XSTATE_SOFTWARE_HEADER_OFFSET, &words, sizeof(words));
	memcpy(to + tracee->vector_state_bytes, &end, sizeof(end));
}

uint64_t sigreturn_frame_write(uint8_t frame[SIGRETURN_FRAME_SIZE], uint64_t address,
			       const struct tracee *tracee)
{
	const struct user_regs_struct *from = &tracee->registers;
	struct kernel_ucontext context = {
		.flags = UC_FLAGS_STRICT_SS,
		.stack_flags = ALTSTACK_INVALID_FLAGS,
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
	uint64_t at = SIGRETURN_FRAME_SIZE - 64 - sizeof(context);

	at &= ~63ull;
	prepare_syscall_restart(&context, from->orig_rax);
	if (tracee->vector_state_bytes > FXSAVE_SIZE)
		context.flags |= UC_FLAG_FP_XSTATE;
	memset(frame, 0, SIGRETURN_FRAME_SIZE);
	write_vector_state(frame, tracee);
	memcpy(frame + at, &context, sizeof(context));
	/* The kernel takes the frame to begin 8 bytes below the stack pointer, with the return
	 * address that the handler's `ret` has taken off. */
	return address + at;
}

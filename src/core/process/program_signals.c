/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See program_signals.h.
 */
#include "core/process/program_signals.h"

#include <string.h>

#include "common/syscalls.h"
#include "core/base/alignment_check.h"
#include "core/base/fork_state.h"

#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif
#define KERNEL_SIGNAL_MASK_SIZE 8
#define SIGNAL_HANDLER_DEFAULT  ((void *)0)
#define SIGNAL_HANDLER_IGNORE   ((void *)1)

/* The unwinders of gdb and libgcc know the frame by these very bytes (mov $15,%rax; syscall). */
__asm__(".text\n"
	".hidden kymo_signal_return\n"
	".globl kymo_signal_return\n"
	".type kymo_signal_return,@function\n"
	"kymo_signal_return:\n"
	"	movq $15, %rax\n"
	"	syscall\n"
	".size kymo_signal_return,.-kymo_signal_return\n");

long call_rt_sigaction(int signal, const struct kernel_sigaction_layout *fresh,
		       struct kernel_sigaction_layout *previous)
{
	return sys_call4(SYS_rt_sigaction, signal, (long)fresh, (long)previous,
			 KERNEL_SIGNAL_MASK_SIZE);
}

long call_rt_sigprocmask(int how, const uint64_t *fresh, uint64_t *previous)
{
	return sys_call4(SYS_rt_sigprocmask, how, (long)fresh, (long)previous,
			 KERNEL_SIGNAL_MASK_SIZE);
}

/* The lock is held for a few instructions and never while signals are open: a handler cannot meet
 * it held by the thread that it interrupted. */
static uint64_t program_signals_block_and_acquire_lock(struct program_signals *signals)
{
	uint64_t all = ~0ull, previous = 0;

	call_rt_sigprocmask(SIG_BLOCK, &all, &previous);
	while (atomic_exchange_explicit(&signals->lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	return previous;
}

static void program_signals_unlock_and_unblock(struct program_signals *signals, uint64_t mask)
{
	atomic_store_explicit(&signals->lock, 0, memory_order_release);
	call_rt_sigprocmask(SIG_SETMASK, &mask, NULL);
}

static bool wants_alternate_stack(const struct program_signals *signals)
{
	return atomic_load_explicit(&signals->alternate_stack_mask, memory_order_relaxed) &&
	       !atomic_load_explicit(&signals->own_stack_mask, memory_order_relaxed);
}

KYMO_FORK_CODE static long install_our_handler(struct program_signals *signals, void *handler)
{
	struct kernel_sigaction_layout ours = {
		.handler = handler,
		.flags = SA_SIGINFO | SA_RESTART | SA_RESTORER |
			 (signals->program_action.flags & SA_ONSTACK) |
			 (wants_alternate_stack(signals) ? SA_ONSTACK : 0),
		.restorer = (void *)kymo_signal_return,
		.mask = ~0ull};

	return call_rt_sigaction(signals->signal, &ours, NULL);
}

int program_signals_take_over_signal(struct program_signals *signals, int signal, void *handler)
{
	long error = call_rt_sigaction(signal, NULL, &signals->program_action);

	if (error)
		return (int)error;
	signals->signal = signal;
	return (int)install_our_handler(signals, handler);
}

static void install_our_current_handler(struct program_signals *signals)
{
	struct kernel_sigaction_layout current = {0};

	call_rt_sigaction(signals->signal, NULL, &current);
	install_our_handler(signals, current.handler);
}

static void note_stack_of_handler(struct program_signals *signals, int signal, bool has_handler,
				  bool on_alternate_stack)
{
	uint64_t bit = signal_to_mask_bit(signal), mask;
	bool wanted = wants_alternate_stack(signals);

	atomic_fetch_and_explicit(&signals->alternate_stack_mask, ~bit, memory_order_relaxed);
	atomic_fetch_and_explicit(&signals->own_stack_mask, ~bit, memory_order_relaxed);
	if (has_handler)
		atomic_fetch_or_explicit(on_alternate_stack ? &signals->alternate_stack_mask
							    : &signals->own_stack_mask,
					 bit, memory_order_relaxed);
	if (wanted == wants_alternate_stack(signals) || !signals->signal)
		return;
	mask = program_signals_block_and_acquire_lock(signals);
	install_our_current_handler(signals);
	program_signals_unlock_and_unblock(signals, mask);
}

void program_signals_note_has_handler(struct program_signals *signals, int signal,
				      const void *handler, uint64_t flags)
{
	/* Faults are raised by the thread's own instructions and interrupt no system call. */
	static const uint64_t synchronous = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |
					    1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) |
					    1ull << (SIGTRAP - 1) | 1ull << (SIGABRT - 1) |
					    1ull << (SIGSYS - 1);

	/* What libc has handlers for (SIGCANCEL, SIGSETXID) says nothing of the program. */
	static const uint64_t of_libc = 3ull << (32 - 1);
	bool has_handler = handler != SIGNAL_HANDLER_DEFAULT && handler != SIGNAL_HANDLER_IGNORE;

	if (signal < 1 || signal > 64 || synchronous & signal_to_mask_bit(signal))
		return;
	if (!(of_libc & signal_to_mask_bit(signal)))
		note_stack_of_handler(signals, signal, has_handler, flags & SA_ONSTACK);
	if (has_handler)
		atomic_store_explicit(&signals->has_program_handlers, 1, memory_order_relaxed);
}

void program_signals_add_handler_mask(struct program_signals *signals, const void *handler,
				      uint64_t mask)
{
	if (handler != SIGNAL_HANDLER_DEFAULT && handler != SIGNAL_HANDLER_IGNORE)
		atomic_fetch_or_explicit(&signals->blocked_in_handlers_mask, mask,
					 memory_order_relaxed);
}

void program_signals_note_all_handlers(struct program_signals *signals, int ours)
{
	for (int signal = 1; signal <= 64; signal++) {
		struct kernel_sigaction_layout action = {.handler = SIGNAL_HANDLER_DEFAULT};

		if (signal == ours || call_rt_sigaction(signal, NULL, &action))
			continue;
		program_signals_note_has_handler(signals, signal, action.handler, action.flags);
		program_signals_add_handler_mask(signals, action.handler, action.mask);
	}
}

/* A signal that nobody handles and that the kernel ignores by default is lost without a trace. */
static bool late_signal_is_harmless(const struct program_signals *signals)
{
	return signals->program_action.handler == SIGNAL_HANDLER_IGNORE ||
	       (signals->program_action.handler == SIGNAL_HANDLER_DEFAULT &&
		(signals->signal == SIGURG || signals->signal == SIGCHLD ||
		 signals->signal == SIGWINCH));
}

void program_signals_try_restore_action(struct program_signals *signals, bool pending)
{
	struct kernel_sigaction_layout action = signals->program_action;

	if (!signals->signal || (pending && !late_signal_is_harmless(signals)))
		return;
	if (!(action.flags & SA_RESTORER)) {
		action.flags |= SA_RESTORER;
		action.restorer = (void *)kymo_signal_return;
	}
	if (!call_rt_sigaction(signals->signal, &action, NULL))
		signals->signal = 0;
}

static void kernel_sigaction_to_libc(const struct kernel_sigaction_layout *from,
				     struct sigaction *to)
{
	memset(to, 0, sizeof(*to));
	to->sa_handler = (void (*)(int))from->handler;
	to->sa_flags = (int)(from->flags & ~(uint64_t)SA_RESTORER);
	memcpy(&to->sa_mask, &from->mask, sizeof(from->mask));
}

void program_signals_emulate_sigaction(struct program_signals *signals,
				       const struct sigaction *fresh, struct sigaction *previous)
{
	struct sigaction old;
	uint64_t mask = program_signals_block_and_acquire_lock(signals);

	kernel_sigaction_to_libc(&signals->program_action, &old);
	if (fresh) {
		signals->program_action.handler = (void *)fresh->sa_handler;
		signals->program_action.flags = (uint64_t)(uint32_t)fresh->sa_flags;
		memcpy(&signals->program_action.mask, &fresh->sa_mask,
		       sizeof(signals->program_action.mask));
		install_our_current_handler(signals); /* follow the program's SA_ONSTACK */
	}
	program_signals_unlock_and_unblock(signals, mask);
	if (previous)
		*previous = old;
}

/* The default action for a foreign signal: put the default back and send the signal again; it
 * arrives when the handler returns, with the status and core dump that the program would have had.
 */
static void raise_with_default_action(int signal)
{
	struct kernel_sigaction_layout standard = {.handler = SIGNAL_HANDLER_DEFAULT};

	if (signal == SIGURG || signal == SIGCHLD || signal == SIGWINCH)
		return;
	call_rt_sigaction(signal, &standard, NULL);
	sys_call3(SYS_tgkill, sys_getpid(), sys_gettid(), signal);
}

void program_signals_run_program_action(struct program_signals *signals, int signal,
					siginfo_t *information, void *context)
{
	struct kernel_sigaction_layout action = signals->program_action;
	uint64_t mask;

	if (action.handler == SIGNAL_HANDLER_IGNORE)
		return;
	if (action.handler == SIGNAL_HANDLER_DEFAULT) {
		raise_with_default_action(signal);
		return;
	}
	memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, sizeof(mask));
	mask |= action.mask;
	if (!(action.flags & SA_NODEFER))
		mask |= signal_to_mask_bit(signal);
	if (action.flags & SA_RESETHAND)
		signals->program_action.handler = SIGNAL_HANDLER_DEFAULT;
	call_rt_sigprocmask(SIG_SETMASK, &mask,
			    NULL); /* rt_sigreturn puts the interrupted mask back */
	alignment_check_resume(context);
	if (action.flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))action.handler)(signal, information, context);
	else
		((void (*)(int))action.handler)(signal);
}

void program_signals_apply_ignore_at_exec(struct program_signals *signals)
{
	struct kernel_sigaction_layout ignore = {.handler = SIGNAL_HANDLER_IGNORE};

	/* The kernel itself puts the default in the handler's place once all other threads are
	 * gone; before that the default would kill the process by a signal that one of them has
	 * pending. */
	if (signals->signal && signals->program_action.handler == SIGNAL_HANDLER_IGNORE)
		call_rt_sigaction(signals->signal, &ignore, NULL);
}

KYMO_FORK_CODE void program_signals_reinstall_our_handler(struct program_signals *signals,
							  void *handler)
{
	if (signals->signal)
		install_our_handler(signals, handler);
}

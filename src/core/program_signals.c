/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See program_signals.h.
 */
#include "core/program_signals.h"

#include <string.h>

#include "common/syscalls.h"

#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif
#define KERNEL_MASK_SIZE 8
#define HANDLER_DEFAULT  ((void *)0)
#define HANDLER_IGNORE   ((void *)1)

/* The unwinders of gdb and libgcc know the frame by these very bytes (mov $15,%rax; syscall). */
__asm__(".text\n"
	".hidden kymo_signal_return\n"
	".globl kymo_signal_return\n"
	".type kymo_signal_return,@function\n"
	"kymo_signal_return:\n"
	"	movq $15, %rax\n"
	"	syscall\n"
	".size kymo_signal_return,.-kymo_signal_return\n");

long kernel_sigaction(int signal, const struct kernel_action *fresh, struct kernel_action *previous)
{
	return sys_call4(SYS_rt_sigaction, signal, (long)fresh, (long)previous, KERNEL_MASK_SIZE);
}

long kernel_sigmask(int how, const uint64_t *fresh, uint64_t *previous)
{
	return sys_call4(SYS_rt_sigprocmask, how, (long)fresh, (long)previous, KERNEL_MASK_SIZE);
}

/* The lock is held for a few instructions and never while signals are open: a handler cannot meet
 * it held by the thread that it interrupted. */
static uint64_t lock(struct program_signals *signals)
{
	uint64_t all = ~0ull, previous = 0;

	kernel_sigmask(SIG_BLOCK, &all, &previous);
	while (atomic_exchange_explicit(&signals->lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	return previous;
}

static void unlock(struct program_signals *signals, uint64_t mask)
{
	atomic_store_explicit(&signals->lock, 0, memory_order_release);
	kernel_sigmask(SIG_SETMASK, &mask, NULL);
}

static long install(struct program_signals *signals, void *handler)
{
	struct kernel_action ours = {.handler = handler,
				     .flags = SA_SIGINFO | SA_RESTART | SA_RESTORER |
					      (signals->action.flags & SA_ONSTACK),
				     .restorer = (void *)kymo_signal_return,
				     .mask = ~0ull};

	return kernel_sigaction(signals->signal, &ours, NULL);
}

int program_signals_take(struct program_signals *signals, int signal, void *handler)
{
	long error = kernel_sigaction(signal, NULL, &signals->action);

	if (error)
		return (int)error;
	signals->signal = signal;
	return (int)install(signals, handler);
}

void program_signals_note(struct program_signals *signals, int signal, const void *handler)
{
	/* Faults are raised by the thread's own instructions and interrupt no system call. */
	static const uint64_t synchronous = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |
					    1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) |
					    1ull << (SIGTRAP - 1) | 1ull << (SIGABRT - 1) |
					    1ull << (SIGSYS - 1);

	if (handler == HANDLER_DEFAULT || handler == HANDLER_IGNORE || signal < 1 || signal > 64)
		return;
	if (!(synchronous & signal_bit(signal)))
		atomic_store_explicit(&signals->has_handlers, 1, memory_order_relaxed);
}

void program_signals_note_all(struct program_signals *signals, int ours)
{
	for (int signal = 1; signal <= 64; signal++) {
		struct kernel_action action = {.handler = HANDLER_DEFAULT};

		if (signal != ours && !kernel_sigaction(signal, NULL, &action))
			program_signals_note(signals, signal, action.handler);
	}
}

/* A signal that nobody handles and that the kernel ignores by default is lost without a trace. */
static bool may_come_late(const struct program_signals *signals)
{
	return signals->action.handler == HANDLER_IGNORE ||
	       (signals->action.handler == HANDLER_DEFAULT &&
		(signals->signal == SIGURG || signals->signal == SIGCHLD ||
		 signals->signal == SIGWINCH));
}

void program_signals_give_back(struct program_signals *signals, bool pending)
{
	struct kernel_action action = signals->action;

	if (!signals->signal || (pending && !may_come_late(signals)))
		return;
	if (!(action.flags & SA_RESTORER)) {
		action.flags |= SA_RESTORER;
		action.restorer = (void *)kymo_signal_return;
	}
	if (!kernel_sigaction(signals->signal, &action, NULL))
		signals->signal = 0;
}

static void to_libc(const struct kernel_action *from, struct sigaction *to)
{
	memset(to, 0, sizeof(*to));
	to->sa_handler = (void (*)(int))from->handler;
	to->sa_flags = (int)(from->flags & ~(uint64_t)SA_RESTORER);
	memcpy(&to->sa_mask, &from->mask, sizeof(from->mask));
}

void program_signals_action(struct program_signals *signals, const struct sigaction *fresh,
			    struct sigaction *previous)
{
	struct sigaction old;
	uint64_t mask = lock(signals);

	to_libc(&signals->action, &old);
	if (fresh) {
		struct kernel_action current = {0};
		signals->action.handler = (void *)fresh->sa_handler;
		signals->action.flags = (uint64_t)(uint32_t)fresh->sa_flags;
		memcpy(&signals->action.mask, &fresh->sa_mask, sizeof(signals->action.mask));
		kernel_sigaction(signals->signal, NULL, &current);
		install(signals, current.handler); /* follow the program's SA_ONSTACK */
	}
	unlock(signals, mask);
	if (previous)
		*previous = old;
}

/* The default action for a foreign signal: put the default back and send the signal again; it
 * arrives when the handler returns, with the status and core dump that the program would have had.
 */
static void deliver_default(int signal)
{
	struct kernel_action standard = {.handler = HANDLER_DEFAULT};

	if (signal == SIGURG || signal == SIGCHLD || signal == SIGWINCH)
		return;
	kernel_sigaction(signal, &standard, NULL);
	sys_call3(SYS_tgkill, sys_getpid(), sys_gettid(), signal);
}

void program_signals_deliver(struct program_signals *signals, int signal, siginfo_t *information,
			     void *context)
{
	struct kernel_action action = signals->action;
	uint64_t mask;

	if (action.handler == HANDLER_IGNORE)
		return;
	if (action.handler == HANDLER_DEFAULT) {
		deliver_default(signal);
		return;
	}
	memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, sizeof(mask));
	mask |= action.mask;
	if (!(action.flags & SA_NODEFER))
		mask |= signal_bit(signal);
	if (action.flags & SA_RESETHAND)
		signals->action.handler = HANDLER_DEFAULT;
	kernel_sigmask(SIG_SETMASK, &mask, NULL); /* rt_sigreturn puts the interrupted mask back */
	if (action.flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))action.handler)(signal, information, context);
	else
		((void (*)(int))action.handler)(signal);
}

void program_signals_prepare_exec(struct program_signals *signals)
{
	struct kernel_action ignore = {.handler = HANDLER_IGNORE};

	/* The kernel itself puts the default in the handler's place once all other threads are
	 * gone; before that the default would kill the process by a signal that one of them has
	 * pending. */
	if (signals->signal && signals->action.handler == HANDLER_IGNORE)
		kernel_sigaction(signals->signal, &ignore, NULL);
}

void program_signals_take_again(struct program_signals *signals, void *handler)
{
	if (signals->signal)
		install(signals, handler);
}

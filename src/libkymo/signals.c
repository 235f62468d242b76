/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers that keep the program's view of signals as it would be without kymo
 * (core/program_signals.h).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "common/syscalls.h"
#include "core/control_signal.h"
#include "core/runtime.h"
#include "libkymo/real.h"

static int our_signal(void)
{
	return runtime_active() ? kymo_runtime.signals.signal : 0;
}

/* CONTROL_SIGNAL: the program sees the default action, until it sets another. */
static int control_action(int signal, const struct sigaction *fresh, struct sigaction *previous)
{
	if (previous)
		*previous = (struct sigaction){.sa_handler = SIG_DFL};
	if (!fresh || fresh->sa_handler == SIG_DFL)
		return 0;
	control_signal_give_up();
	return REAL(sigaction)(signal, fresh, NULL);
}

static sighandler_t control_handler(sighandler_t (*real)(int, sighandler_t), int signal,
				    sighandler_t handler)
{
	if (handler == SIG_DFL)
		return SIG_DFL;
	control_signal_give_up();
	return real(signal, handler) == SIG_ERR ? SIG_ERR : SIG_DFL;
}

EXPORTED int sigaction(int signal, const struct sigaction *restrict fresh,
		       struct sigaction *restrict previous)
{
	if (fresh && runtime_active())
		program_signals_note(&kymo_runtime.signals, signal,
				     (const void *)fresh->sa_handler);
	if (signal && signal == our_signal()) {
		program_signals_action(&kymo_runtime.signals, fresh, previous);
		return 0;
	}
	if (control_signal_is(signal))
		return control_action(signal, fresh, previous);
	return REAL(sigaction)(signal, fresh, previous);
}

static sighandler_t set_handler(int signal, sighandler_t handler, int flags)
{
	struct sigaction fresh = {.sa_handler = handler, .sa_flags = flags}, previous;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER))
		sigaddset(&fresh.sa_mask, signal);
	program_signals_action(&kymo_runtime.signals, &fresh, &previous);
	return previous.sa_handler;
}

EXPORTED sighandler_t signal(int number, sighandler_t handler)
{
	if (number && number == our_signal())
		return set_handler(number, handler, SA_RESTART);
	if (runtime_active() && handler != SIG_ERR)
		program_signals_note(&kymo_runtime.signals, number, (const void *)handler);
	if (control_signal_is(number) && handler != SIG_ERR)
		return control_handler(REAL(signal), number, handler);
	return REAL(signal)(number, handler);
}

EXPORTED sighandler_t sysv_signal(int number, sighandler_t handler)
{
	if (number && number == our_signal())
		return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
	if (runtime_active() && handler != SIG_ERR)
		program_signals_note(&kymo_runtime.signals, number, (const void *)handler);
	if (control_signal_is(number) && handler != SIG_ERR)
		return control_handler(REAL(sysv_signal), number, handler);
	return REAL(sysv_signal)(number, handler);
}

/* What the program asks for, less our bit; what it believes is kept in the thread's block. */
static bool virtual_mask(struct thread *thread, int how, const sigset_t *fresh,
			 sigset_t *ret_filtered)
{
	int ours = kymo_runtime.signals.signal;
	bool named = sigismember(fresh, ours) == 1;

	*ret_filtered = *fresh;
	if (how == SIG_SETMASK)
		thread->wants_blocked = named;
	else if (named)
		thread->wants_blocked = how == SIG_BLOCK;
	else
		return false;
	if (how != SIG_UNBLOCK)
		sigdelset(ret_filtered, ours);
	return true;
}

static int set_mask(int (*real)(int, const sigset_t *, sigset_t *), int how, const sigset_t *fresh,
		    sigset_t *previous)
{
	struct thread *thread = our_signal() ? runtime_this_thread() : NULL;
	sigset_t filtered;
	bool believed, valid = how == SIG_BLOCK || how == SIG_UNBLOCK || how == SIG_SETMASK;
	int result;

	if (!thread || (fresh && !valid))
		return real(how, fresh, previous);
	believed = thread->wants_blocked;
	if (fresh && virtual_mask(thread, how, fresh, &filtered))
		fresh = &filtered;
	result = real(how, fresh, previous);
	if (previous && believed)
		sigaddset(previous, kymo_runtime.signals.signal);
	if (thread->foreign_pending && !thread->wants_blocked) {
		thread->foreign_pending = false;
		sys_call3(SYS_tgkill, sys_getpid(), (long)thread->tid, kymo_runtime.signals.signal);
	}
	return result;
}

EXPORTED int sigprocmask(int how, const sigset_t *restrict fresh, sigset_t *restrict previous)
{
	return set_mask(REAL(sigprocmask), how, fresh, previous);
}

EXPORTED int pthread_sigmask(int how, const sigset_t *restrict fresh, sigset_t *restrict previous)
{
	return set_mask(REAL(pthread_sigmask), how, fresh, previous);
}

/* A set to wait for, without our signal. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *storage)
{
	int ours = our_signal();

	if (!ours || !set || sigismember(set, ours) != 1)
		return set;
	*storage = *set;
	sigdelset(storage, ours);
	return storage;
}

EXPORTED int sigwait(const sigset_t *restrict set, int *restrict ret_signal)
{
	sigset_t storage;

	return REAL(sigwait)(without_ours(set, &storage), ret_signal);
}

EXPORTED int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict information)
{
	sigset_t storage;

	return REAL(sigwaitinfo)(without_ours(set, &storage), information);
}

EXPORTED int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict information,
			  const struct timespec *restrict timeout)
{
	sigset_t storage;

	return REAL(sigtimedwait)(without_ours(set, &storage), information, timeout);
}

EXPORTED int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t storage;

	return REAL(signalfd)(fd, without_ours(set, &storage), flags);
}

EXPORTED int sigpending(sigset_t *set)
{
	struct thread *thread = our_signal() ? runtime_this_thread() : NULL;
	int result = REAL(sigpending)(set);

	if (thread && !result && thread->foreign_pending)
		sigaddset(set, kymo_runtime.signals.signal);
	return result;
}

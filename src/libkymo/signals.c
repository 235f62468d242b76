/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers that keep the program's view of signals as it would be without kymo
 * (core/process/program_signals.h).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "common/syscalls.h"
#include "core/control_signal.h"
#include "core/runtime.h"
#include "libkymo/dormant.h"
#include "libkymo/real.h"
#include "libkymo/signals.h"

/* The first 64 signals are all that the kernel has. */
static uint64_t sigset_to_kernel_bits(const sigset_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof(bits));
	return bits;
}

static struct program_signals *const program_signals = &kymo_runtime.signals;

static int get_current_sampling_signal(void)
{
	return runtime_is_active() || dormant_is_this_process() ? program_signals->signal : 0;
}

/* CONTROL_SIGNAL: the program sees the default action, until it sets another. */
static int set_program_control_signal_action(int signal, const struct sigaction *fresh,
					     struct sigaction *previous)
{
	if (previous)
		*previous = (struct sigaction){.sa_handler = SIG_DFL};
	if (!fresh || fresh->sa_handler == SIG_DFL)
		return 0;
	control_signal_release_to_program();
	return REAL(sigaction)(signal, fresh, NULL);
}

static sighandler_t set_program_control_signal_handler(sighandler_t (*real)(int, sighandler_t),
						       int signal, sighandler_t handler)
{
	if (handler == SIG_DFL)
		return SIG_DFL;
	control_signal_release_to_program();
	return real(signal, handler) == SIG_ERR ? SIG_ERR : SIG_DFL;
}

static int set_program_action(int signal, const struct sigaction *fresh, struct sigaction *previous)
{
	dormant_install_pending_wrappers();
	if (fresh && (runtime_is_active() || dormant_is_this_process())) {
		program_signals_note_has_handler(program_signals, signal,
						 (const void *)fresh->sa_handler,
						 (uint64_t)(uint32_t)fresh->sa_flags);
		program_signals_add_handler_mask(program_signals, (const void *)fresh->sa_handler,
						 sigset_to_kernel_bits(&fresh->sa_mask));
	}
	if (signal && signal == get_current_sampling_signal()) {
		program_signals_emulate_sigaction(program_signals, fresh, previous);
		return 0;
	}
	if (control_signal_is_used_by_kymo(signal))
		return set_program_control_signal_action(signal, fresh, previous);
	return REAL(sigaction)(signal, fresh, previous);
}

EXPORTED int sigaction(int signal, const struct sigaction *restrict fresh,
		       struct sigaction *restrict previous)
{
	return set_program_action(signal, fresh, previous);
}

/* libc's other name for it, which a program's own sigaction() may call (Erlang). */
EXPORTED int __sigaction(int signal, const struct sigaction *restrict fresh,
			 struct sigaction *restrict previous);
EXPORTED int __sigaction(int signal, const struct sigaction *restrict fresh,
			 struct sigaction *restrict previous)
{
	return set_program_action(signal, fresh, previous);
}

static sighandler_t set_emulated_program_signal_handler(int signal, sighandler_t handler, int flags)
{
	struct sigaction fresh = {.sa_handler = handler, .sa_flags = flags}, previous;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER))
		sigaddset(&fresh.sa_mask, signal);
	program_signals_emulate_sigaction(program_signals, &fresh, &previous);
	return previous.sa_handler;
}

EXPORTED sighandler_t signal(int number, sighandler_t handler)
{
	if (number && number == get_current_sampling_signal())
		return set_emulated_program_signal_handler(number, handler, SA_RESTART);
	if ((runtime_is_active() || dormant_is_this_process()) && handler != SIG_ERR)
		program_signals_note_has_handler(program_signals, number, (const void *)handler, 0);
	if (control_signal_is_used_by_kymo(number) && handler != SIG_ERR)
		return set_program_control_signal_handler(REAL(signal), number, handler);
	return REAL(signal)(number, handler);
}

EXPORTED sighandler_t sysv_signal(int number, sighandler_t handler)
{
	if (number && number == get_current_sampling_signal())
		return set_emulated_program_signal_handler(number, handler,
							   (int)(SA_RESETHAND | SA_NODEFER));
	if ((runtime_is_active() || dormant_is_this_process()) && handler != SIG_ERR)
		program_signals_note_has_handler(program_signals, number, (const void *)handler, 0);
	if (control_signal_is_used_by_kymo(number) && handler != SIG_ERR)
		return set_program_control_signal_handler(REAL(sysv_signal), number, handler);
	return REAL(sysv_signal)(number, handler);
}

/* What the program asks for, less our bit; what it believes is kept in the thread's block. */
static bool filter_program_signal_mask(struct thread *thread, int how, const sigset_t *fresh,
				       sigset_t *ret_filtered)
{
	int ours = program_signals->signal;
	bool named = sigismember(fresh, ours) == 1;

	*ret_filtered = *fresh;
	if (how == SIG_SETMASK)
		thread->wants_signal_blocked = named;
	else if (named)
		thread->wants_signal_blocked = how == SIG_BLOCK;
	else
		return false;
	if (how != SIG_UNBLOCK)
		sigdelset(ret_filtered, ours);
	return true;
}

/* A signal of our number that came for the program while it believed it blocked. */
static void send_pending_signal_if_unblocked(struct thread *thread)
{
	if (!thread->is_program_signal_pending || thread->wants_signal_blocked)
		return;
	thread->is_program_signal_pending = false;
	sys_call3(SYS_tgkill, sys_getpid(), (long)thread->tid, program_signals->signal);
}

static int set_program_signal_mask(int (*real)(int, const sigset_t *, sigset_t *), int how,
				   const sigset_t *fresh, sigset_t *previous)
{
	struct thread *thread = get_current_sampling_signal() ? runtime_find_this_thread() : NULL;
	sigset_t filtered;
	bool believed, valid = how == SIG_BLOCK || how == SIG_UNBLOCK || how == SIG_SETMASK;
	int result;

	if (!thread || (fresh && !valid))
		return real(how, fresh, previous);
	believed = thread->wants_signal_blocked;
	if (fresh && filter_program_signal_mask(thread, how, fresh, &filtered))
		fresh = &filtered;
	thread->is_in_mask_setting_call = true;
	result = real(how, fresh, previous);
	thread->is_in_mask_setting_call = false;
	if (previous && believed)
		sigaddset(previous, program_signals->signal);
	send_pending_signal_if_unblocked(thread);
	return result;
}

EXPORTED int sigprocmask(int how, const sigset_t *restrict fresh, sigset_t *restrict previous)
{
	return set_program_signal_mask(REAL(sigprocmask), how, fresh, previous);
}

EXPORTED int pthread_sigmask(int how, const sigset_t *restrict fresh, sigset_t *restrict previous)
{
	return set_program_signal_mask(REAL(pthread_sigmask), how, fresh, previous);
}

/* The same by the raw system call, which takes the kernel's sets. Its pointers may be wrong: then
 * the kernel says so, and nothing is changed. */
long signals_set_program_mask_by_syscall(long how, const void *fresh, void *previous, long size)
{
	struct thread *thread = get_current_sampling_signal() ? runtime_find_this_thread() : NULL;
	sigset_t wanted = {{0}}, filtered;
	uint64_t bits = 0, *before = previous;
	struct iovec here = {&bits, sizeof(bits)}, there = {(void *)fresh, sizeof(bits)};
	bool valid = how == SIG_BLOCK || how == SIG_UNBLOCK || how == SIG_SETMASK, believed;
	long result;

	if (!thread || is_calling_thread_off_limits() || size != sizeof(bits) ||
	    (fresh && !valid) ||
	    (fresh && sys_call6(SYS_process_vm_readv, (long)sys_getpid(), (long)&here, 1,
				(long)&there, 1, 0) != sizeof(bits)))
		return REAL(syscall)(SYS_rt_sigprocmask, how, fresh, previous, size);
	believed = thread->wants_signal_blocked;
	memcpy(&wanted, &bits, sizeof(bits));
	if (fresh && filter_program_signal_mask(thread, (int)how, &wanted, &filtered)) {
		memcpy(&bits, &filtered, sizeof(bits));
		fresh = &bits;
	}
	thread->is_in_mask_setting_call = true;
	result = REAL(syscall)(SYS_rt_sigprocmask, how, fresh, previous, size);
	thread->is_in_mask_setting_call = false;
	if (!result && before && believed)
		*before |= signal_to_mask_bit(program_signals->signal);
	send_pending_signal_if_unblocked(thread);
	return result;
}

/* A set to wait for, without our signal. */
static const sigset_t *get_signal_set_without_sampling_signal(const sigset_t *set,
							      sigset_t *storage)
{
	int ours = get_current_sampling_signal();

	if (!ours || !set || sigismember(set, ours) != 1)
		return set;
	*storage = *set;
	sigdelset(storage, ours);
	return storage;
}

EXPORTED int sigwait(const sigset_t *restrict set, int *restrict ret_signal)
{
	sigset_t storage;

	return REAL(sigwait)(get_signal_set_without_sampling_signal(set, &storage), ret_signal);
}

EXPORTED int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict information)
{
	sigset_t storage;

	return REAL(sigwaitinfo)(get_signal_set_without_sampling_signal(set, &storage),
				 information);
}

EXPORTED int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict information,
			  const struct timespec *restrict timeout)
{
	sigset_t storage;

	return REAL(sigtimedwait)(get_signal_set_without_sampling_signal(set, &storage),
				  information, timeout);
}

EXPORTED int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t storage;

	return REAL(signalfd)(fd, get_signal_set_without_sampling_signal(set, &storage), flags);
}

EXPORTED int sigpending(sigset_t *set)
{
	struct thread *thread = get_current_sampling_signal() ? runtime_find_this_thread() : NULL;
	int result = REAL(sigpending)(set);

	if (thread && !result && thread->is_program_signal_pending)
		sigaddset(set, program_signals->signal);
	return result;
}

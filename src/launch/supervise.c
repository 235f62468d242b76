/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Supervision; see supervise.h.
 *
 * SIGINT and SIGQUIT from the terminal reach the program by themselves (it is in the same process
 * group); kymo survives them to write the results. When a process sends them to kymo alone, and for
 * SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, they are passed on. Stops are followed only under a shell's
 * job control: elsewhere nobody would continue kymo, should somebody else continue the program.
 */
#include "launch/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "common/process_stat.h"
#include "common/time_units.h"
#include "launch/file_limit.h"
#include "launch/reaper.h"

static const int forwarded_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { FORWARDED_SIGNAL_COUNT = ARRAY_SIZE(forwarded_signals) };

/* What would end kymo, or hide the program's status, before the results are written: a closed
 * standard error, a limit on CPU time, an ignored SIGCHLD. (On file size: file_limit.h.) */
static const int signals_that_must_not_end_kymo[] = {SIGCHLD, SIGPIPE, SIGXCPU};
enum { SHIELDED_SIGNAL_COUNT = ARRAY_SIZE(signals_that_must_not_end_kymo) };

/* For the handlers. */
static volatile sig_atomic_t child_pid;
static volatile sig_atomic_t interrupt_count;
static int interrupt_handler_wait_status;
static const char *interrupt_handler_message;

static void supervise_forward_signal(int signal, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	/* Behind the program's end nobody else is to be ended. */
	if (signal == SIGINT || (!child_pid && signal != SIGUSR1 && signal != SIGUSR2))
		interrupt_count++;
	/* SI_KERNEL: typed at the terminal, the whole group has it already. */
	if (child_pid > 0 && info->si_code != SI_KERNEL)
		kill((pid_t)child_pid, signal);
	errno = saved;
}

/* What the caller gave us and every child must have. */
static struct inherited_signals_and_timers {
	bool is_captured;
	sigset_t mask;
	struct sigaction forwarded_actions[FORWARDED_SIGNAL_COUNT];
	struct sigaction shielded_actions[SHIELDED_SIGNAL_COUNT];
	struct itimerval timers[3]; /* exec keeps them, fork does not */
} inherited_signals_and_timers;

/* All signals are blocked until there is a child to pass them on to, so that none is lost between.
 * The second time the handlers are our own already. */
static void supervise_take_over_signals_and_timers(struct inherited_signals_and_timers *state)
{
	struct sigaction forward = {.sa_sigaction = supervise_forward_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t all;

	sigfillset(&all);
	sigfillset(&forward.sa_mask);
	sigprocmask(SIG_BLOCK, &all, state->is_captured ? NULL : &state->mask);
	if (state->is_captured)
		return;
	state->is_captured = true;
	for (unsigned i = 0; i < FORWARDED_SIGNAL_COUNT; i++)
		sigaction(forwarded_signals[i], &forward, &state->forwarded_actions[i]);
	for (unsigned i = 0; i < SHIELDED_SIGNAL_COUNT; i++) {
		struct sigaction own = {.sa_handler = signals_that_must_not_end_kymo[i] == SIGCHLD
							      ? SIG_DFL
							      : SIG_IGN};

		sigaction(signals_that_must_not_end_kymo[i], &own, &state->shielded_actions[i]);
	}
	for (int i = 0; i < 3; i++) {
		static const struct itimerval off;

		setitimer((__itimer_which_t)i, &off, &state->timers[i]);
	}
}

static void supervise_restore_signals_and_timers(const struct inherited_signals_and_timers *state)
{
	for (unsigned i = 0; i < FORWARDED_SIGNAL_COUNT; i++)
		sigaction(forwarded_signals[i], &state->forwarded_actions[i], NULL);
	for (unsigned i = 0; i < SHIELDED_SIGNAL_COUNT; i++)
		sigaction(signals_that_must_not_end_kymo[i], &state->shielded_actions[i], NULL);
	for (int i = 0; i < 3; i++)
		setitimer((__itimer_which_t)i, &state->timers[i], NULL);
}

int supervise_exec_in_place(const char *path, char *const arguments[], char *const environment[])
{
	file_limit_restore_sigxfsz();
	execve(path, arguments, environment);
	if (errno == ENOEXEC) {
		size_t count = 0;

		while (arguments[count])
			count++;
		const char **shell = calloc(count + 2, sizeof(*shell));

		if (shell) {
			shell[0] = "/bin/sh";
			shell[1] = path;
			for (size_t i = 1; i < count; i++)
				shell[i + 1] = arguments[i];
			execve(shell[0], (char **)shell, environment);
		}
		errno = ENOEXEC;
	}
	return errno;
}

static void (*prepare_child)(void *context, pid_t pid);
static void *prepare_child_context;

void supervise_set_before_exec(void (*prepare)(void *context, pid_t pid), void *context)
{
	prepare_child = prepare;
	prepare_child_context = context;
}

/* The child waits until the parent closes its end. */
static void supervise_wait_until_prepared(const int hold[2])
{
	char byte;

	if (!prepare_child)
		return;
	close(hold[1]);
	while (read(hold[0], &byte, 1) < 0 && errno == EINTR)
		;
}

static void supervise_prepare_child(pid_t pid, const int hold[2])
{
	if (!prepare_child)
		return;
	if (pid > 0)
		prepare_child(prepare_child_context, pid);
	close(hold[0]);
	close(hold[1]);
}

/* Runs in the child. */
static _Noreturn void supervise_execute_in_child(const char *path, char *const arguments[],
						 char *const environment[],
						 const struct inherited_signals_and_timers *state,
						 int report)
{
	int error;

	supervise_restore_signals_and_timers(state);
	sigprocmask(SIG_SETMASK, &state->mask, NULL);
	error = supervise_exec_in_place(path, arguments, environment);
	while (write(report, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(127);
}

static int supervise_read_exec_errno(int report)
{
	int error = 0;
	ssize_t length;

	do
		length = read(report, &error, sizeof(error));
	while (length < 0 && errno == EINTR);
	return length == sizeof(error) ? error : 0;
}

/* Whether a shell waits for us to stop: we are in the foreground of our terminal. */
static bool supervise_is_in_foreground(void)
{
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	bool foreground = terminal >= 0 && tcgetpgrp(terminal) == getpgrp();

	if (terminal >= 0)
		close(terminal);
	return foreground;
}

/* Whether the child is still stopped. When a shell continues the whole group, kymo may hear of the
 * stop only then, and must not stop after everybody else went on. */
static bool supervise_is_still_stopped(pid_t pid)
{
	static const struct timespec moment = {.tv_nsec = 5000000};
	struct process_stat stat;

	nanosleep(&moment, NULL);
	return process_stat_read((uint32_t)pid, &stat) && (stat.state == 'T' || stat.state == 't');
}

static void supervise_wait_for_end(struct supervised_program_end *ret)
{
	struct rusage usage;
	int status;

	for (;;) {
		reaper_wait_for_child(ret->pid);
		if (wait4(ret->pid, &status, WUNTRACED, &usage) < 0) {
			if (errno == EINTR)
				continue;
			status = W_EXITCODE(125, 0); /* somebody else reaped our child */
			memset(&usage, 0, sizeof(usage));
			break;
		}
		if (!WIFSTOPPED(status))
			break;
		if (supervise_is_in_foreground() && supervise_is_still_stopped(ret->pid)) {
			raise(SIGSTOP);
			kill(ret->pid, SIGCONT);
		}
	}
	ret->wait_status = status;
	ret->user_ns = (int64_t)timeval_to_ns(&usage.ru_utime);
	ret->system_ns = (int64_t)timeval_to_ns(&usage.ru_stime);
	ret->involuntary_switches = (uint64_t)usage.ru_nivcsw;
}

int supervise_run_program(const char *path, char *const arguments[], char *const environment[],
			  struct supervised_program_end *ret)
{
	inherited_signals_and_timers.is_captured = false;
	return supervise_run_program_again(path, arguments, environment, ret);
}

int supervise_run_program_again(const char *path, char *const arguments[],
				char *const environment[], struct supervised_program_end *ret)
{
	struct inherited_signals_and_timers *state = &inherited_signals_and_timers;
	int report[2], hold[2] = {-1, -1};
	pid_t pid;

	memset(ret, 0, sizeof(*ret));
	if (pipe2(report, O_CLOEXEC))
		return -errno;
	if (prepare_child && pipe2(hold, O_CLOEXEC)) {
		int error = errno;

		close(report[0]);
		close(report[1]);
		return -error;
	}
	reaper_become_subreaper_if_needed();
	supervise_take_over_signals_and_timers(state);
	pid = fork();
	if (!pid) {
		supervise_wait_until_prepared(hold);
		supervise_execute_in_child(path, arguments, environment, state, report[1]);
	}
	if (pid < 0) {
		int error = errno;

		supervise_prepare_child(pid, hold);
		supervise_restore_signals_and_timers(state);
		sigprocmask(SIG_SETMASK, &state->mask, NULL);
		state->is_captured = false;
		close(report[0]);
		close(report[1]);
		return -error;
	}
	supervise_prepare_child(pid, hold);
	ret->pid = pid;
	child_pid = (sig_atomic_t)pid;
	interrupt_count = 0;
	close(report[1]);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	ret->exec_errno = supervise_read_exec_errno(report[0]);
	close(report[0]);
	supervise_wait_for_end(ret);
	child_pid = 0;
	reaper_reap_remaining();
	ret->interrupted = interrupt_count > 0;
	ret->discards_results = interrupt_count > 1;
	return 0;
}

bool supervise_was_interrupted(void)
{
	return interrupt_count > 0;
}

static void supervise_exit_in_handler(int signal)
{
	(void)signal;
	if (write(STDERR_FILENO, interrupt_handler_message, strlen(interrupt_handler_message)) < 0)
		_exit(125);
	supervise_exit_like_program(interrupt_handler_wait_status);
}

void supervise_install_exit_on_interrupt(int wait_status, const char *message)
{
	struct sigaction leave = {.sa_handler = supervise_exit_in_handler};

	interrupt_handler_wait_status = wait_status;
	interrupt_handler_message = message;
	sigaction(SIGINT, &leave, NULL);
	leave.sa_handler = SIG_DFL;
	for (unsigned i = 2; i < FORWARDED_SIGNAL_COUNT; i++)
		sigaction(forwarded_signals[i], &leave, NULL);
}

/* Only async-signal-safe calls: it also ends kymo from a handler. */
_Noreturn void supervise_exit_like_program(int wait_status)
{
	struct rlimit no_core = {0, 0};
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigset_t only;
	int signal;

	if (WIFEXITED(wait_status))
		_exit(WEXITSTATUS(wait_status));
	signal = WTERMSIG(wait_status);
	setrlimit(RLIMIT_CORE, &no_core);
	sigaction(signal, &plain, NULL);
	sigemptyset(&only);
	sigaddset(&only, signal);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	raise(signal);
	_exit(128 + signal);
}

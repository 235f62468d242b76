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
#include "cmd/supervise.h"

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

#include "cmd/file_limit.h"

static const int supervised_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { SUPERVISED_SIGNALS = sizeof(supervised_signals) / sizeof(supervised_signals[0]) };

/* What would end kymo, or hide the program's status, before the results are written: a closed
 * standard error, a limit on CPU time, an ignored SIGCHLD. (On file size: file_limit.h.) */
static const int own_signals[] = {SIGCHLD, SIGPIPE, SIGXCPU};
enum { OWN_SIGNALS = sizeof(own_signals) / sizeof(own_signals[0]) };

/* For the handlers. */
static volatile sig_atomic_t child_pid;
static volatile sig_atomic_t interrupts;
static int final_status;
static const char *final_message;

static void supervise_forward(int signal, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (signal == SIGINT)
		interrupts++;
	/* SI_KERNEL: typed at the terminal, the whole group has it already. */
	if (child_pid > 0 && info->si_code != SI_KERNEL)
		kill((pid_t)child_pid, signal);
	errno = saved;
}

/* What the caller gave us and every child must have. */
static struct supervise_state {
	bool taken;
	sigset_t mask;
	struct sigaction actions[SUPERVISED_SIGNALS];
	struct sigaction own_actions[OWN_SIGNALS];
	struct itimerval timers[3]; /* exec keeps them, fork does not */
} supervise_state;

/* All signals are blocked until there is a child to pass them on to, so that none is lost between.
 * The second time the handlers are our own already. */
static void supervise_take_signals(struct supervise_state *state)
{
	struct sigaction forward = {.sa_sigaction = supervise_forward,
				    .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t all;

	sigfillset(&all);
	sigfillset(&forward.sa_mask);
	sigprocmask(SIG_BLOCK, &all, state->taken ? NULL : &state->mask);
	if (state->taken)
		return;
	state->taken = true;
	for (unsigned i = 0; i < SUPERVISED_SIGNALS; i++)
		sigaction(supervised_signals[i], &forward, &state->actions[i]);
	for (unsigned i = 0; i < OWN_SIGNALS; i++) {
		struct sigaction own = {.sa_handler =
						own_signals[i] == SIGCHLD ? SIG_DFL : SIG_IGN};

		sigaction(own_signals[i], &own, &state->own_actions[i]);
	}
	for (int i = 0; i < 3; i++) {
		static const struct itimerval off;

		setitimer((__itimer_which_t)i, &off, &state->timers[i]);
	}
}

static void supervise_give_back_signals(const struct supervise_state *state)
{
	for (unsigned i = 0; i < SUPERVISED_SIGNALS; i++)
		sigaction(supervised_signals[i], &state->actions[i], NULL);
	for (unsigned i = 0; i < OWN_SIGNALS; i++)
		sigaction(own_signals[i], &state->own_actions[i], NULL);
	for (int i = 0; i < 3; i++)
		setitimer((__itimer_which_t)i, &state->timers[i], NULL);
}

int supervise_replace(const char *path, char *const arguments[], char *const environment[])
{
	file_limit_give_back();
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

/* Runs in the child. */
static _Noreturn void supervise_execute(const char *path, char *const arguments[],
					char *const environment[],
					const struct supervise_state *state, int report)
{
	int error;

	supervise_give_back_signals(state);
	sigprocmask(SIG_SETMASK, &state->mask, NULL);
	error = supervise_replace(path, arguments, environment);
	while (write(report, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(127);
}

static int supervise_exec_errno(int report)
{
	int error = 0;
	ssize_t length;

	do
		length = read(report, &error, sizeof(error));
	while (length < 0 && errno == EINTR);
	return length == sizeof(error) ? error : 0;
}

/* Whether a shell waits for us to stop: we are in the foreground of our terminal. */
static bool supervise_under_job_control(void)
{
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	bool foreground = terminal >= 0 && tcgetpgrp(terminal) == getpgrp();

	if (terminal >= 0)
		close(terminal);
	return foreground;
}

/* Whether the child is still stopped. When a shell continues the whole group, kymo may hear of the
 * stop only then, and must not stop after everybody else went on. */
static bool supervise_still_stopped(pid_t pid)
{
	static const struct timespec moment = {.tv_nsec = 5000000};
	char path[32], line[512] = "";
	const char *after_name;
	FILE *file;

	nanosleep(&moment, NULL);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	after_name = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return after_name && (after_name[2] == 'T' || after_name[2] == 't');
}

static int64_t supervise_ns(struct timeval time)
{
	return ((int64_t)time.tv_sec * 1000000 + time.tv_usec) * 1000;
}

static void supervise_wait(struct supervised *ret)
{
	struct rusage usage;
	int status;

	for (;;) {
		if (wait4(ret->pid, &status, WUNTRACED, &usage) < 0) {
			if (errno == EINTR)
				continue;
			status = W_EXITCODE(125, 0); /* somebody else reaped our child */
			memset(&usage, 0, sizeof(usage));
			break;
		}
		if (!WIFSTOPPED(status))
			break;
		if (supervise_under_job_control() && supervise_still_stopped(ret->pid)) {
			raise(SIGSTOP);
			kill(ret->pid, SIGCONT);
		}
	}
	ret->wait_status = status;
	ret->user_ns = supervise_ns(usage.ru_utime);
	ret->system_ns = supervise_ns(usage.ru_stime);
	ret->involuntary_switches = (uint64_t)usage.ru_nivcsw;
}

int supervise_run(const char *path, char *const arguments[], char *const environment[],
		  struct supervised *ret)
{
	supervise_state.taken = false;
	return supervise_run_again(path, arguments, environment, ret);
}

int supervise_run_again(const char *path, char *const arguments[], char *const environment[],
			struct supervised *ret)
{
	struct supervise_state *state = &supervise_state;
	int report[2];
	pid_t pid;

	memset(ret, 0, sizeof(*ret));
	if (pipe2(report, O_CLOEXEC))
		return -errno;
	supervise_take_signals(state);
	pid = fork();
	if (!pid)
		supervise_execute(path, arguments, environment, state, report[1]);
	if (pid < 0) {
		int error = errno;

		supervise_give_back_signals(state);
		sigprocmask(SIG_SETMASK, &state->mask, NULL);
		state->taken = false;
		close(report[0]);
		close(report[1]);
		return -error;
	}
	ret->pid = pid;
	child_pid = (sig_atomic_t)pid;
	interrupts = 0;
	close(report[1]);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	ret->exec_errno = supervise_exec_errno(report[0]);
	close(report[0]);
	supervise_wait(ret);
	child_pid = 0;
	ret->interrupted = interrupts > 0;
	ret->give_up = interrupts > 1;
	return 0;
}

static void supervise_leave(int signal)
{
	(void)signal;
	if (write(STDERR_FILENO, final_message, strlen(final_message)) < 0)
		_exit(125);
	supervise_exit_like(final_status);
}

void supervise_give_up_on_interrupt(int wait_status, const char *message)
{
	struct sigaction leave = {.sa_handler = supervise_leave};

	final_status = wait_status;
	final_message = message;
	sigaction(SIGINT, &leave, NULL);
	leave.sa_handler = SIG_DFL;
	for (unsigned i = 2; i < SUPERVISED_SIGNALS; i++)
		sigaction(supervised_signals[i], &leave, NULL);
}

/* Only async-signal-safe calls: it also ends kymo from a handler. */
_Noreturn void supervise_exit_like(int wait_status)
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

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All threads of a process, stopped and let go again: ptrace(2).
 *
 * They are seized while they run, which costs them nothing, and then interrupted. Any stop will do:
 * one with which a signal is reported holds the thread as well, and the signal is delivered when it
 * goes on. The one who waits does so with a timer, since waitpid(2) knows no time; it is in a
 * process of its own (commit.c), so all its children are these threads.
 */
#include "inject/commit_private.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "common/monotonic.h"

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#endif
#define EVENT_STOP                  128 /* PTRACE_EVENT_STOP */
#define LATE_THREADS_WAIT_STEP_NS   1000000ull
#define LATE_THREADS_WAIT_STEPS_MAX 2000

static int ptrace_request(int request, pid_t tid, void *address, const void *data)
{
	return ptrace((enum __ptrace_request)request, tid, address, data) ? -errno : 0;
}

static struct commit_thread *find_thread(const struct commit_threads *threads, pid_t tid)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->list[i]->tracee.tid == tid)
			return threads->list[i];
	}
	return NULL;
}

static struct commit_thread *add_thread(struct commit_threads *threads, pid_t tid)
{
	struct commit_thread *thread;

	if (threads->count == threads->capacity) {
		size_t capacity = threads->capacity ? 2 * threads->capacity : 64;
		struct commit_thread **larger = realloc(threads->list, capacity * sizeof(void *));

		if (!larger)
			return NULL;
		threads->list = larger;
		threads->capacity = capacity;
	}
	/* The vector state of a thread lies at multiples of 64. */
	thread = aligned_alloc(_Alignof(struct commit_thread), sizeof(*thread));
	if (!thread)
		return NULL;
	memset(thread, 0, sizeof(*thread));
	thread->tracee.pid = threads->pid;
	thread->tracee.tid = tid;
	thread->tracee.memory = threads->memory;
	threads->list[threads->count++] = thread;
	return thread;
}

/* Has it ended, though others of its process live? */
static bool thread_is_dead(pid_t pid, pid_t tid)
{
	char path[96], text[512];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (process_read_proc_file(path, text, sizeof(text)) <= 0)
		return true;
	state = strrchr(text, ')');
	return state && (state[2] == 'Z' || state[2] == 'X');
}

/* Seizes the threads that are not yet; how many, or negative errno. */
static int seize_new_threads(struct commit_threads *threads, struct problem *problem)
{
	char path[64];
	struct dirent *entry;
	DIR *directory;
	int found = 0, error = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)threads->pid);
	directory = opendir(path);
	if (!directory)
		return problem_set(problem, -ESRCH, "process %d has ended", (int)threads->pid);
	while (!error && (entry = readdir(directory))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct commit_thread *thread;

		if (tid <= 0 || find_thread(threads, tid))
			continue;
		thread = add_thread(threads, tid);
		if (!thread) {
			error = problem_set(problem, -ENOMEM, "out of memory");
			break;
		}
		error = ptrace_request(PTRACE_SEIZE, tid, NULL, NULL);
		thread->seized = !error;
		thread->gone = error;
		found += !error;
		if (error == -ESRCH || (error && thread_is_dead(threads->pid, tid)))
			error = 0;
		else if (error)
			problem_set(problem, error,
				    "the system does not permit kymo to stop thread %d of process "
				    "%d: %s (is a debugger attached?)",
				    (int)tid, (int)threads->pid, strerror(-error));
	}
	closedir(directory);
	return error ? error : found;
}

int commit_threads_seize(struct commit_threads *threads, struct problem *problem)
{
	int found = seize_new_threads(threads, problem);

	return found < 0 ? found : 0;
}

/* ---- stopping ---- */

static void ignore_alarm(int signal)
{
	(void)signal;
}

/* waitpid(2) is to return by then, again and again. */
static void start_repeating_alarm(uint64_t after_ns)
{
	struct sigaction action = {.sa_handler = ignore_alarm};
	struct itimerval timer = {
		.it_value = {(time_t)(after_ns / 1000000000),
			     (suseconds_t)(after_ns / 1000 % 1000000)},
		.it_interval = {0, after_ns ? 1000 : 0},
	};
	sigset_t alarm;

	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void mark_thread_gone(struct commit_threads *threads, struct commit_thread *thread)
{
	threads->unstopped_thread_count--;
	thread->gone = true;
}

static void handle_thread_stop(struct commit_threads *threads, struct commit_thread *thread,
			       int status)
{
	if (!WIFSTOPPED(status)) {
		mark_thread_gone(threads, thread);
		return;
	}
	threads->unstopped_thread_count--;
	if (ptrace_request(PTRACE_GETREGS, thread->tracee.tid, NULL, &thread->tracee.registers)) {
		thread->gone = true; /* killed meanwhile */
		return;
	}
	thread->stopped = true;
	thread->signal = status >> 16 == EVENT_STOP ? 0 : WSTOPSIG(status);
}

static bool thread_stop_is_awaited(const struct commit_thread *thread)
{
	return thread->seized && !thread->stopped && !thread->gone;
}

/* Each by its number, the last one that was interrupted first: we are woken for that one alone
 * (kernel, child_wait_callback() in kernel/exit.c), and the others have the processor meanwhile. */
static int wait_for_threads_to_stop(struct commit_threads *threads, uint64_t end_ns)
{
	int status;

	for (size_t i = threads->count; i-- > 0;) {
		struct commit_thread *thread = threads->list[i];
		pid_t got = -1;

		while (thread_stop_is_awaited(thread) && got) {
			bool late = monotonic_ns() >= end_ns;

			got = waitpid(thread->tracee.tid, &status, __WALL | (late ? WNOHANG : 0));
			if (got > 0)
				handle_thread_stop(threads, thread, status);
			else if (got < 0 && errno != EINTR)
				mark_thread_gone(threads, thread);
		}
	}
	return threads->unstopped_thread_count ? -EAGAIN : 0;
}

static void ptrace_interrupt_awaited_threads(struct commit_threads *threads)
{
	for (size_t i = 0; i < threads->count; i++) {
		struct commit_thread *thread = threads->list[i];

		if (!thread_stop_is_awaited(thread))
			continue;
		if (ptrace_request(PTRACE_INTERRUPT, thread->tracee.tid, NULL, NULL))
			thread->gone = true;
		else
			threads->unstopped_thread_count++;
	}
}

static bool any_thread_is_stopped(const struct commit_threads *threads)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->list[i]->stopped)
			return true;
	}
	return false;
}

int commit_threads_stop(struct commit_threads *threads, uint64_t patience_ns)
{
	uint64_t end_ns;
	int found, error;

	threads->stop_began_ns = monotonic_ns();
	end_ns = threads->stop_began_ns + patience_ns;
	start_repeating_alarm(patience_ns);
	do {
		ptrace_interrupt_awaited_threads(threads);
		error = wait_for_threads_to_stop(threads, end_ns);
		found = error ? 0 : seize_new_threads(threads, NULL);
	} while (found > 0);
	start_repeating_alarm(0);
	if (!error && !found && !any_thread_is_stopped(threads))
		error = -ESRCH;
	return error ? error : found;
}

bool commit_thread_set_pc(struct commit_thread *thread, uint64_t pc)
{
	thread->tracee.registers.rip = pc;
	return !ptrace_request(PTRACE_SETREGS, thread->tracee.tid, NULL, &thread->tracee.registers);
}

/* ---- letting go ---- */

/* Has the process a handler for it? Others do not end system calls. */
static bool signal_is_caught(pid_t pid, int signal)
{
	char path[64], status[4096], value[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (process_read_proc_file(path, status, sizeof(status)) <= 0 ||
	    !process_read_status_field(status, "SigCgt", value, sizeof(value)))
		return true;
	return strtoull(value, NULL, 16) >> (signal - 1) & 1;
}

static void restart_interrupted_syscall(struct commit_thread *thread)
{
	struct tracee *tracee = &thread->tracee;

	if ((int64_t)tracee->registers.rax != -EINTR || (int64_t)tracee->registers.orig_rax < 0)
		return;
	if (thread->signal && signal_is_caught(tracee->pid, thread->signal))
		return;
	if (!ptrace_request(PTRACE_GETSIGMASK, tracee->tid, (void *)sizeof(tracee->mask),
			    &tracee->mask))
		tracee_restart_syscall_if_cut_short(tracee);
}

static void detach_stopped_threads(struct commit_threads *threads)
{
	for (size_t i = 0; i < threads->count; i++) {
		struct commit_thread *thread = threads->list[i];

		if (!thread->stopped || thread->gone)
			continue;
		restart_interrupted_syscall(thread);
		ptrace_request(PTRACE_DETACH, thread->tracee.tid, NULL,
			       (void *)(long)thread->signal);
		thread->gone = true;
	}
}

/* After a stop that was given up: whom it reaches only now has a system call to resume as well.
 * Who does not stop for longer is cut off with us. */
static void detach_late_threads(struct commit_threads *threads)
{
	int error = -EAGAIN;

	start_repeating_alarm(LATE_THREADS_WAIT_STEP_NS);
	for (int i = 0; i < LATE_THREADS_WAIT_STEPS_MAX && error == -EAGAIN; i++) {
		error = wait_for_threads_to_stop(threads,
						 monotonic_ns() + LATE_THREADS_WAIT_STEP_NS);
		detach_stopped_threads(threads);
	}
	start_repeating_alarm(0);
}

void commit_threads_resume(struct commit_threads *threads)
{
	detach_stopped_threads(threads);
	threads->stop_ended_ns = monotonic_ns();
	if (threads->unstopped_thread_count)
		detach_late_threads(threads);
}

void commit_threads_free(struct commit_threads *threads)
{
	for (size_t i = 0; i < threads->count; i++)
		free(threads->list[i]);
	free(threads->list);
	memset(threads, 0, sizeof(*threads));
}

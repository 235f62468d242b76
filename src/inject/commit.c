/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See commit.h. It is done in a child process, which ends nothing half way: no signal reaches it
 * but SIGKILL, and then the kernel lets the threads go; those that were moved are in code that does
 * the same. A try whose threads do not all stop in time is given up, all go on, and another is
 * made: a program bears several short stops better than one that lasts until a thread comes that
 * waits in the kernel or for a processor.
 */
#include "inject/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/commit_private.h"

#define MILLISECOND_NS 1000000ull
#define SHORT_TRIES    5
#define SHORT_NS       (3 * MILLISECOND_NS) /* for all threads to stop, at first */
#define LONG_TRIES     6
#define LONG_NS        (50 * MILLISECOND_NS) /* then; and each time more */

struct commit {
	pid_t pid;
	int memory;
	struct commit_sites sites;
	struct commit_threads threads;
	struct commit_moves moves;
	struct process_maps maps;
};

/* What the child tells. */
struct outcome {
	int error;
	struct commit_result result;
	struct problem problem;
};

/* ---- ahead of others ---- */

/* What libc does not declare: struct sched_attr of linux/sched/types.h. */
struct deadline {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* While others run on this processor, all threads stand. It may not be permitted. Real-time
 * priorities are second to the kernel's deadline server for ordinary threads (Linux 6.8, sched(7)),
 * which on a busy machine took 10 and even 100 ms; a deadline of our own is not. */
static void go_first(void)
{
	struct deadline deadline = {.size = sizeof(deadline),
				    .policy = SCHED_DEADLINE,
				    .runtime_ns = 8 * MILLISECOND_NS,
				    .deadline_ns = 10 * MILLISECOND_NS,
				    .period_ns = 10 * MILLISECOND_NS};
	struct sched_param priority = {.sched_priority = 1};

	if (syscall(SYS_sched_setattr, 0, &deadline, 0) &&
	    sched_setscheduler(0, SCHED_FIFO, &priority))
		setpriority(PRIO_PROCESS, 0, -20);
}

/* ---- one try ---- */

static int explain(const struct commit *commit, int error, struct problem *problem)
{
	switch (error) {
	case -EAGAIN:
		return problem_set(problem, error,
				   "not all threads of process %d can be stopped: one waits in the "
				   "kernel; try again",
				   (int)commit->pid);
	case -ESRCH:
		return problem_set(problem, error, "process %d has ended", (int)commit->pid);
	default:
		return problem_set(problem, error, "cannot stop the threads of process %d: %s",
				   (int)commit->pid, strerror(-error));
	}
}

/* While all threads stand. */
static int change(struct commit *commit, struct problem *problem)
{
	if (!commit_sites_check(&commit->sites))
		return problem_set(problem, -EFAULT,
				   "a file of process %d is not mapped any more where it was",
				   (int)commit->pid);
	if (!commit->sites.undo &&
	    commit_moves_find(&commit->moves, &commit->threads, &commit->sites, &commit->maps))
		return problem_set(problem, -ENOMEM, "out of memory");
	if (!commit_moves_apply(&commit->moves, commit->memory))
		return problem_set(problem, -EIO, "a thread of process %d cannot be moved",
				   (int)commit->pid);
	if (!commit_sites_write(&commit->sites))
		return problem_set(problem, -EIO,
				   "the system does not let kymo write to the code of process %d",
				   (int)commit->pid);
	return 0;
}

static void report(const struct commit *commit, struct commit_result *ret)
{
	const struct commit_sites *sites = &commit->sites;

	for (size_t i = 0; i < commit->threads.count; i++)
		ret->threads += commit->threads.list[i]->stopped;
	ret->moved = (uint32_t)commit->moves.count;
	ret->skipped = commit_sites_in_state(sites, COMMIT_LEFT);
	ret->sites = commit_sites_in_state(sites, COMMIT_WRITTEN) +
		     commit_sites_in_state(sites, COMMIT_DONE);
}

static int stop_and_change(struct commit *commit, uint64_t patience_ns, struct outcome *ret)
{
	int error;

	go_first(); /* a thread that takes a signal stands from being followed on */
	error = commit_threads_follow(&commit->threads, &ret->problem);
	if (error)
		return error;
	error = commit_threads_stop(&commit->threads, patience_ns);
	if (error)
		explain(commit, error, &ret->problem);
	else
		error = change(commit, &ret->problem);
	commit_threads_release(&commit->threads);
	ret->result.stops = 1;
	ret->result.stopped_ns = commit->threads.stop_ended_ns - commit->threads.stop_began_ns;
	return error;
}

/* Code of 32 bits has other registers, frames and calls. */
static int check_class(pid_t pid, struct problem *problem)
{
	uint8_t start[5] = {0};
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0 && read(file, start, sizeof(start)) == sizeof(start) && start[4] == 1) {
		close(file);
		return problem_set(problem, -ENOEXEC, "process %d is a 32-bit program", (int)pid);
	}
	if (file >= 0)
		close(file);
	return 0;
}

static int check_tracer(pid_t pid, struct problem *problem)
{
	char path[64], status[4096], value[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (process_read_file(path, status, sizeof(status)) <= 0)
		return problem_set(problem, -ESRCH, "process %d has ended", (int)pid);
	if (process_status(status, "TracerPid", value, sizeof(value)) && strcmp(value, "0"))
		return problem_set(problem, -EPERM,
				   "process %d is being traced by process %s (a debugger, strace): "
				   "end that first",
				   (int)pid, value);
	return 0;
}

static int try(struct commit *commit, const struct commit_module *modules, size_t count, bool undo,
	       uint64_t patience_ns, struct outcome *ret)
{
	char path[64];
	int error = check_tracer(commit->pid, &ret->problem);

	if (!error)
		error = check_class(commit->pid, &ret->problem);
	if (error)
		return error;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)commit->pid);
	commit->memory = open(path, O_RDWR | O_CLOEXEC);
	if (commit->memory < 0)
		return problem_set(&ret->problem, -errno, "cannot write to process %d: %s",
				   (int)commit->pid, strerror(errno));
	commit->threads.pid = commit->pid;
	commit->threads.memory = commit->memory;
	error = commit_sites_prepare(&commit->sites, modules, count, undo, commit->pid,
				     commit->memory, &ret->problem);
	if (!error && process_maps_read(commit->pid, &commit->maps))
		error = problem_set(&ret->problem, -ESRCH, "process %d has ended",
				    (int)commit->pid);
	if (!error && commit_sites_in_state(&commit->sites, COMMIT_WANTED))
		error = stop_and_change(commit, patience_ns, ret);
	if (!error)
		report(commit, &ret->result);
	return error;
}

/* ---- the child that does it ---- */

static _Noreturn void run_child(pid_t pid, const struct commit_module *modules, size_t count,
				bool undo, uint64_t patience_ns, struct outcome *ret)
{
	static struct commit commit;

	/* Whoever ends our process group does not mean the half of a stop. */
	setsid();
	commit = (struct commit){.pid = pid, .memory = -1};
	ret->error = try(&commit, modules, count, undo, patience_ns, ret);
	_exit(0);
}

static void try_in_child(pid_t pid, const struct commit_module *modules, size_t count, bool undo,
			 uint64_t patience_ns, struct outcome *outcome)
{
	sigset_t all, mask;
	pid_t child;

	outcome->error = -EIO;
	problem_set(&outcome->problem, 0, "writing to the code of process %d was cut short",
		    (int)pid);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	child = fork();
	if (!child)
		run_child(pid, modules, count, undo, patience_ns, outcome);
	if (child < 0)
		problem_set(&outcome->problem, 0, "cannot start a process: %s", strerror(errno));
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static uint64_t patience_of(int number)
{
	return number < SHORT_TRIES ? SHORT_NS : (uint64_t)(number - SHORT_TRIES + 1) * LONG_NS;
}

static int commit_run(pid_t pid, const struct commit_module *modules, size_t count, bool undo,
		      struct commit_result *ret, struct problem *problem)
{
	static const struct timespec pause = {.tv_nsec = 20 * MILLISECOND_NS};
	struct outcome *outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t longest_ns = 0;
	uint32_t stops = 0;
	int error;

	memset(ret, 0, sizeof(*ret));
	if (outcome == MAP_FAILED)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (int i = 0; i < SHORT_TRIES + LONG_TRIES; i++) {
		memset(&outcome->result, 0, sizeof(outcome->result));
		try_in_child(pid, modules, count, undo, patience_of(i), outcome);
		stops += outcome->result.stops;
		if (outcome->result.stopped_ns > longest_ns)
			longest_ns = outcome->result.stopped_ns;
		if (outcome->error != -EAGAIN)
			break;
		nanosleep(&pause, NULL);
	}
	error = outcome->error;
	*ret = outcome->result;
	ret->stops = stops;
	ret->stopped_ns = longest_ns;
	if (error)
		problem_set(problem, error, "%s", outcome->problem.text);
	munmap(outcome, sizeof(*outcome));
	return error;
}

int commit_apply(pid_t pid, const struct commit_module *modules, size_t count,
		 struct commit_result *ret, struct problem *problem)
{
	return commit_run(pid, modules, count, false, ret, problem);
}

int commit_undo(pid_t pid, const struct commit_module *modules, size_t count,
		struct commit_result *ret, struct problem *problem)
{
	return commit_run(pid, modules, count, true, ret, problem);
}

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

#include "common/time_units.h"
#include "inject/commit_private.h"

#define SHORT_STOP_TRIES_MAX      5
#define SHORT_STOP_TRY_TIMEOUT_NS (3 * MILLISECOND_NS) /* for all threads to stop, at first */
#define LONG_STOP_TRIES_MAX       6
#define LONG_STOP_TRY_TIMEOUT_NS  (50 * MILLISECOND_NS) /* then; and each time more */

struct commit_job_state {
	pid_t pid;
	int memory;
	struct commit_sites sites;
	struct commit_threads threads;
	struct commit_moves moves;
	struct process_maps maps;
};

/* What the child tells. */
struct commit_child_outcome_info {
	int error;
	struct commit_result result;
	struct problem problem;
};

/* ---- ahead of others ---- */

/* What libc does not declare: struct sched_attr of linux/sched/types.h. */
struct sched_deadline_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* While others run on this processor, all threads stand. It may not be permitted. Real-time
 * priorities are second to the kernel's deadline server for ordinary threads (Linux 6.8, sched(7)),
 * which on a busy machine took 10 and even 100 ms; a deadline of our own is not. */
static void raise_scheduling_priority(void)
{
	struct sched_deadline_attributes deadline = {.size = sizeof(deadline),
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

static int set_stop_failure_problem(const struct commit_job_state *commit, int error,
				    struct problem *problem)
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
static int write_patches(struct commit_job_state *commit, struct problem *problem)
{
	if (!commit_sites_read_and_check(&commit->sites))
		return problem_set(problem, -EFAULT, "process %d has unmapped or moved a file",
				   (int)commit->pid);
	if (!commit->sites.is_undo &&
	    commit_moves_find_in_all_threads(&commit->moves, &commit->threads, &commit->sites,
					     &commit->maps))
		return problem_set(problem, -ENOMEM, "out of memory");
	if (!commit_moves_apply(&commit->moves, commit->memory))
		return problem_set(problem, -EIO, "a thread of process %d cannot be moved",
				   (int)commit->pid);
	if (!commit_sites_write(&commit->sites))
		return problem_set(
			problem, -EIO,
			"the system does not permit kymo to write to the code of process %d",
			(int)commit->pid);
	return 0;
}

static void fill_commit_result(const struct commit_job_state *commit, struct commit_result *ret)
{
	const struct commit_sites *sites = &commit->sites;

	for (size_t i = 0; i < commit->threads.count; i++)
		ret->threads += commit->threads.list[i]->stopped;
	ret->moved_thread_count = (uint32_t)commit->moves.count;
	ret->skipped = commit_sites_count_in_state(sites, COMMIT_SITE_SKIPPED);
	ret->sites = commit_sites_count_in_state(sites, COMMIT_SITE_WRITTEN) +
		     commit_sites_count_in_state(sites, COMMIT_SITE_ALREADY_DONE);
}

static int stop_threads_and_write_patches(struct commit_job_state *commit, uint64_t patience_ns,
					  struct commit_child_outcome_info *ret)
{
	int error;

	raise_scheduling_priority(); /* a thread that takes a signal stands from being followed on
				      */
	error = commit_threads_seize(&commit->threads, &ret->problem);
	if (error)
		return error;
	error = commit_threads_stop(&commit->threads, patience_ns);
	if (error)
		set_stop_failure_problem(commit, error, &ret->problem);
	else
		error = write_patches(commit, &ret->problem);
	commit_threads_resume(&commit->threads);
	ret->result.stop_count = 1;
	ret->result.longest_stop_ns = commit->threads.stop_ended_ns - commit->threads.stop_began_ns;
	return error;
}

/* Code of 32 bits has other registers, frames and calls. */
static int check_program_is_64_bit(pid_t pid, struct problem *problem)
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

static int check_not_traced(pid_t pid, struct problem *problem)
{
	char path[64], status[4096], value[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (process_read_proc_file(path, status, sizeof(status)) <= 0)
		return problem_set(problem, -ESRCH, "process %d has ended", (int)pid);
	if (process_read_status_field(status, "TracerPid", value, sizeof(value)) &&
	    strcmp(value, "0"))
		return problem_set(problem, -EPERM,
				   "process %d is being traced by process %s (a debugger, strace): "
				   "end that first",
				   (int)pid, value);
	return 0;
}

static int try_commit(struct commit_job_state *commit, const struct patched_module *modules,
		      size_t count, bool undo, uint64_t patience_ns,
		      struct commit_child_outcome_info *ret)
{
	char path[64];
	int error = check_not_traced(commit->pid, &ret->problem);

	if (!error)
		error = check_program_is_64_bit(commit->pid, &ret->problem);
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
	if (!error && commit_sites_count_in_state(&commit->sites, COMMIT_SITE_WANTED))
		error = stop_threads_and_write_patches(commit, patience_ns, ret);
	if (!error)
		fill_commit_result(commit, &ret->result);
	return error;
}

/* ---- the child that does it ---- */

static _Noreturn void run_commit_child(pid_t pid, const struct patched_module *modules,
				       size_t count, bool undo, uint64_t patience_ns,
				       struct commit_child_outcome_info *ret)
{
	static struct commit_job_state commit;

	/* Whoever ends our process group does not mean the half of a stop. */
	setsid();
	commit = (struct commit_job_state){.pid = pid, .memory = -1};
	ret->error = try_commit(&commit, modules, count, undo, patience_ns, ret);
	_exit(0);
}

static void try_commit_in_child(pid_t pid, const struct patched_module *modules, size_t count,
				bool undo, uint64_t patience_ns,
				struct commit_child_outcome_info *outcome)
{
	sigset_t all, mask;
	pid_t child;

	outcome->error = -EIO;
	problem_set(&outcome->problem, 0, "writing to the code of process %d was interrupted",
		    (int)pid);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	child = fork();
	if (!child)
		run_commit_child(pid, modules, count, undo, patience_ns, outcome);
	if (child < 0)
		problem_set(&outcome->problem, 0, "cannot start a process: %s", strerror(errno));
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static uint64_t get_timeout_ns_of_try(int number)
{
	return number < SHORT_STOP_TRIES_MAX
		       ? SHORT_STOP_TRY_TIMEOUT_NS
		       : (uint64_t)(number - SHORT_STOP_TRIES_MAX + 1) * LONG_STOP_TRY_TIMEOUT_NS;
}

static int commit_with_retries(pid_t pid, const struct patched_module *modules, size_t count,
			       bool undo, struct commit_result *ret, struct problem *problem)
{
	static const struct timespec pause = {.tv_nsec = 20 * MILLISECOND_NS};
	struct commit_child_outcome_info *outcome = mmap(
		NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t longest_ns = 0;
	uint32_t stops = 0;
	int error;

	memset(ret, 0, sizeof(*ret));
	if (outcome == MAP_FAILED)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (int i = 0; i < SHORT_STOP_TRIES_MAX + LONG_STOP_TRIES_MAX; i++) {
		memset(&outcome->result, 0, sizeof(outcome->result));
		try_commit_in_child(pid, modules, count, undo, get_timeout_ns_of_try(i), outcome);
		stops += outcome->result.stop_count;
		if (outcome->result.longest_stop_ns > longest_ns)
			longest_ns = outcome->result.longest_stop_ns;
		if (outcome->error != -EAGAIN)
			break;
		nanosleep(&pause, NULL);
	}
	error = outcome->error;
	*ret = outcome->result;
	ret->stop_count = stops;
	ret->longest_stop_ns = longest_ns;
	if (error)
		problem_set(problem, error, "%s", outcome->problem.text);
	munmap(outcome, sizeof(*outcome));
	return error;
}

int commit_write_patches(pid_t pid, const struct patched_module *modules, size_t count,
			 struct commit_result *ret, struct problem *problem)
{
	return commit_with_retries(pid, modules, count, false, ret, problem);
}

int commit_restore_code(pid_t pid, const struct patched_module *modules, size_t count,
			struct commit_result *ret, struct problem *problem)
{
	return commit_with_retries(pid, modules, count, true, ret, problem);
}

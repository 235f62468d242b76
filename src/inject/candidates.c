/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See candidates.h. /proc/PID/task/TID/stat, …/syscall: proc(5).
 */
#include "inject/candidates.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/array.h"
#include "inject/process.h"

enum thread_candidate_rank {
	THREAD_RANK_WAITING_RESTARTABLY,
	THREAD_RANK_WAITING,
	THREAD_RANK_RUNNING,
	THREAD_RANK_NEVER_CHOSEN
};

struct thread_candidate {
	pid_t tid;
	enum thread_candidate_rank rank;
};

/* The kernel makes these again by itself after a stop (signal(7)). */
static bool syscall_restarts_by_itself(long number)
{
	switch (number) {
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_futex:
	case SYS_poll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
		return true;
	default:
		return false;
	}
}

static enum thread_candidate_rank compute_thread_rank(pid_t pid, pid_t tid)
{
	char path[96], text[512];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (process_read_proc_file(path, text, sizeof(text)) <= 0)
		return THREAD_RANK_NEVER_CHOSEN;
	state = strrchr(text, ')');
	if (!state || strlen(state) < 3)
		return THREAD_RANK_NEVER_CHOSEN;
	if (state[2] == 'R')
		return THREAD_RANK_RUNNING;
	if (state[2] != 'S') /* D cannot be stopped; Z, X, t, T */
		return THREAD_RANK_NEVER_CHOSEN;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	if (process_read_proc_file(path, text, sizeof(text)) <= 0 || text[0] < '0' || text[0] > '9')
		return THREAD_RANK_RUNNING;
	return syscall_restarts_by_itself(strtol(text, NULL, 10)) ? THREAD_RANK_WAITING_RESTARTABLY
								  : THREAD_RANK_WAITING;
}

static int compare_candidates_by_rank(const void *left, const void *right)
{
	const struct thread_candidate *a = left, *b = right;

	if (a->rank != b->rank)
		return (int)a->rank - (int)b->rank;
	return a->tid < b->tid ? -1 : a->tid > b->tid; /* the main thread first */
}

int candidates_list_threads_by_rank(pid_t pid, struct thread_candidates *ret)
{
	struct thread_candidate found[THREAD_CANDIDATES_MAX * 4];
	char path[64];
	struct dirent *entry;
	size_t count = 0;
	DIR *directory;

	ret->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	if (!directory)
		return -errno;
	while (count < ARRAY_SIZE(found) && (entry = readdir(directory))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		enum thread_candidate_rank rank =
			tid > 0 ? compute_thread_rank(pid, tid) : THREAD_RANK_NEVER_CHOSEN;

		if (rank != THREAD_RANK_NEVER_CHOSEN)
			found[count++] = (struct thread_candidate){tid, rank};
	}
	closedir(directory);
	qsort(found, count, sizeof(found[0]), compare_candidates_by_rank);
	for (size_t i = 0; i < count && i < THREAD_CANDIDATES_MAX; i++)
		ret->tids[ret->count++] = found[i].tid;
	return 0;
}

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

#include "inject/process.h"

enum rank { RANK_WAITS_WELL, RANK_WAITS, RANK_RUNS, RANK_NEVER };

struct candidate {
	pid_t tid;
	enum rank rank;
};

/* The kernel makes these again by itself after a stop (signal(7)). */
static bool restarts(long number)
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

static enum rank judge(pid_t pid, pid_t tid)
{
	char path[96], text[512];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (process_read_file(path, text, sizeof(text)) <= 0)
		return RANK_NEVER;
	state = strrchr(text, ')');
	if (!state || strlen(state) < 3)
		return RANK_NEVER;
	if (state[2] == 'R')
		return RANK_RUNS;
	if (state[2] != 'S') /* D cannot be stopped; Z, X, t, T */
		return RANK_NEVER;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	if (process_read_file(path, text, sizeof(text)) <= 0 || text[0] < '0' || text[0] > '9')
		return RANK_RUNS;
	return restarts(strtol(text, NULL, 10)) ? RANK_WAITS_WELL : RANK_WAITS;
}

static int by_rank(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->rank != b->rank)
		return (int)a->rank - (int)b->rank;
	return a->tid < b->tid ? -1 : a->tid > b->tid; /* the main thread first */
}

int candidates_list(pid_t pid, struct candidates *ret)
{
	struct candidate found[CANDIDATES_MAX * 4];
	char path[64];
	struct dirent *entry;
	size_t count = 0;
	DIR *directory;

	ret->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	if (!directory)
		return -errno;
	while (count < sizeof(found) / sizeof(found[0]) && (entry = readdir(directory))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		enum rank rank = tid > 0 ? judge(pid, tid) : RANK_NEVER;

		if (rank != RANK_NEVER)
			found[count++] = (struct candidate){tid, rank};
	}
	closedir(directory);
	qsort(found, count, sizeof(found[0]), by_rank);
	for (size_t i = 0; i < count && i < CANDIDATES_MAX; i++)
		ret->tids[ret->count++] = found[i].tid;
	return 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * /proc/PID/stat (proc(5)). For the command and what reads results: uses stdio.
 */
#ifndef KYMO_COMMON_PROCESS_STAT_H
#define KYMO_COMMON_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>

struct process_stat {
	char name[64]; /* cut where it is longer: kernel threads may have that many bytes */
	char state;
	uint32_t parent;
	uint64_t start_ticks; /* since the boot; with the pid it is who the process is */
	uint64_t stack_start; /* 0 without the right to see it */
};

/* False: there is no such process. */
bool process_stat_read(uint32_t pid, struct process_stat *ret);

/* Only remains: ended, and not waited for yet. */
static inline bool process_stat_is_of_dead(const struct process_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X';
}

/* 0: no such process, or only its remains. */
static inline uint64_t process_read_start_of_live(uint32_t pid)
{
	struct process_stat stat;

	return process_stat_read(pid, &stat) && !process_stat_is_of_dead(&stat) ? stat.start_ticks
										: 0;
}

#endif

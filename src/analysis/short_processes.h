/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Processes that used little CPU time and share one file (kymo/spool.h, SPOOL_SHORT_NAME).
 */
#ifndef KYMO_ANALYSIS_SHORT_PROCESSES_H
#define KYMO_ANALYSIS_SHORT_PROCESSES_H

#include "analysis/spool_reader.h"

struct short_processes {
	struct spool_file *files; /* one a process; who takes one clears it */
	size_t count, capacity;
	uint64_t torn_bytes; /* that belong to no entry */
};

/* Reads the file; there may be none. Processes that moved to a file of their own are left out. */
int short_processes_read(const char *path, struct short_processes *ret, struct problem *problem);
void short_processes_free(struct short_processes *processes);

static inline bool spool_file_is_short_process(const struct spool_file *file)
{
	return file->header.header_size < SPOOL_ALIGNMENT;
}

struct process_private;

/* Entries do not know of the images of their process before and behind them, nor when the kernel
 * made it. `processes` are in order of their starts; sets what all images of a process have alike,
 * and their numbers. 0 or -ENOMEM. */
int assign_image_numbers_of_all_processes(struct process_private *processes, uint32_t count);

#endif

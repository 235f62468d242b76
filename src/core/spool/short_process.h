/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Entries of the file that the short processes of a session share (kymo/spool.h): that a process is
 * there, how it ended, and what is to be said about it. Each is appended by one write(2), which the
 * kernel does at once, so processes need not know of each other. Signal-safe; by processes that
 * have one thread, and by their vfork children.
 */
#ifndef KYMO_CORE_SPOOL_SHORT_PROCESS_H
#define KYMO_CORE_SPOOL_SHORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

/* The longest path of the shared file, with its zero. */
#define SHORT_PROCESS_PATH_BYTES 4096
#define SHORT_PROCESS_HOST_BYTES 65 /* __NEW_UTS_LEN + 1 */

struct short_process {
	const char *path; /* of the shared file, by short_process_set_path() */
	uint32_t pid, parent_pid;
	uint64_t start_ns; /* CLOCK_MONOTONIC; with the pid it is who the process is */
	uint64_t
		start_cpu_ns; /* what the thread had used then: by exec, the loader, older images */
	/* Of kymo's own work: since when it is busy with the end, by the thread's CPU clock (0: it
	 * is not), and what writing an entry takes, which none can say of itself. */
	uint64_t own_work_begun_cpu_ns, entry_write_ns;
	const char *executable; /* path */
	const char *host;       /* name: a child is on its parent's */
	const char *arguments;  /* zero-separated */
	size_t arguments_bytes; /* without the last zero */
};

struct short_process_notice {
	enum spool_notice kind;
	uint64_t argument;
	const char *text, *more; /* of one text; `more` may be NULL */
};

/* Is the directory one of a session, which has a place for the file? */
bool short_process_is_usable_spool_directory(const char *directory);
/* Writes the path of the file of a usable directory. */
void short_process_set_path(char path[SHORT_PROCESS_PATH_BYTES], const char *directory);
/* Writes the host's name into zeroed memory. */
void short_process_read_host_name(char host[SHORT_PROCESS_HOST_BYTES]);
/* Makes the file. True: there was none, so this is the first process of the session. */
bool short_process_create_file(const char *path);
/* Announces the process; sets its pids and start. False: that could not be written. */
bool short_process_write_start(struct short_process *process);
/* What became of it, and the CPU time that it has used since it began. */
bool short_process_write_end(const struct short_process *process, enum spool_state state,
			     uint64_t cpu_ns);
/* Something to be said about it. `state` as in short_process_write_end(). */
bool short_process_write_notice(const struct short_process *process, enum spool_state state,
				const struct short_process_notice *notice);

#endif

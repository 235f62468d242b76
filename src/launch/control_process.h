/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A profiled process from outside: its spool file's header, through which it is asked to start,
 * stop, flush and detach (include/kymo/spool.h).
 */
#ifndef KYMO_LAUNCH_CONTROL_PROCESS_H
#define KYMO_LAUNCH_CONTROL_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "common/problem.h"
#include "kymo/spool.h"

struct ctl_process {
	pid_t pid;
	char name[64];                   /* as the kernel has it */
	char *path;                      /* of the spool file; malloc'ed */
	int file;                        /* locked: one request at a time */
	struct spool_file_header header; /* as it was when it was last read */
};

/* Finds the spool file of a running process in /proc/PID/maps. 0; -ESRCH no such process, -ENOENT
 * not profiled, -EACCES, … */
int ctl_process_open_spool_file(pid_t pid, struct ctl_process *ret, struct problem *problem);
/* Reads the header again. */
int ctl_process_read_header(struct ctl_process *process);
void ctl_process_close_spool_file(struct ctl_process *process);
/* Asks and waits until it is done, at most 5 s. */
int ctl_process_write_command_and_wait(struct ctl_process *process, enum spool_control command,
				       struct problem *problem);

/* The live processes of the session that this one belongs to, itself included. *ret is malloc'ed.
 */
int ctl_list_session_processes(const struct ctl_process *process, pid_t **ret, size_t *ret_count,
			       struct problem *problem);

#endif

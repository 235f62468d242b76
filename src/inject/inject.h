/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Loading a library into a process that runs, and calling one function of it: ptrace(2), one thread
 * borrowed for a few milliseconds, everything put back as it was.
 *
 * A thread is borrowed only where it can hold no lock that dlopen needs: see stack.h. Everything
 * the thread had is saved (registers, vector state, signal mask, errno, the interrupted system
 * call), the call runs on a stack of its own, and should the one who injects die meanwhile, the
 * thread finds its way back by itself (see code.h). Nobody else in the process is stopped.
 */
#ifndef KYMO_INJECT_INJECT_H
#define KYMO_INJECT_INJECT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/problem.h"

#define INJECT_ARGUMENT_BLOCK_SIZE_MAX (256u << 10)

/* What is known of a process before it is touched. */
struct injection_target {
	pid_t pid;
	uid_t user; /* effective ids: what it may open and write */
	gid_t group;
	bool stopped; /* by job control: nothing can run in it */
	/* Nothing can be loaded into it, but it can be looked at from outside. */
	bool can_be_sampled_from_outside;
	bool is_go;       /* it would end on kymo's signals (common/go_note.h) */
	bool is_profiled; /* its kymo library is writing a spool file */
	char profile_session_directory[1024]; /* then: where to, as the process sees it */
};

/* Can anything be loaded into this process? 0, or a negative errno with the reason. */
int inject_check_target(pid_t pid, struct injection_target *ret, struct problem *problem);
/* Is `path` the same file for the process as it is for us (containers, private mounts)? */
bool inject_target_sees_same_file(pid_t pid, const char *path);

struct injection_call {
	const char *library;       /* absolute path */
	const char *function;      /* int function(const char *block) */
	const char *block;         /* what it is given; copied into the process */
	size_t block_size;         /* up to INJECT_ARGUMENT_BLOCK_SIZE_MAX */
	unsigned patience_seconds; /* seconds to look for a thread at a good place; 0: ten */
};

/* Loads the library, calls the function and leaves. *ret_result is what the function returned.
 * Blocks for as long as that takes, at most about half a minute. */
int inject_call_function(const struct injection_target *target, const struct injection_call *call,
			 int *ret_result, struct problem *problem);

#endif

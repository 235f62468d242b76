/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Profiling a process that runs already, from its pid to the results: what `kymo attach` and
 * `kymo instrument -p` have in common.
 */
#ifndef KYMO_RUNS_ATTACH_H
#define KYMO_RUNS_ATTACH_H

#include "launch/attach_session.h"
#include "settings/command.h"

/* What a command does beside; any may be NULL. */
struct attach_callbacks {
	/* The session directory was made, the process was not touched. */
	int (*start)(void *context, struct attach_session *session,
		     const struct injection_target *target, struct problem *problem);
	/* libkymo runs in the process, all of whose threads are back where they were. */
	int (*attached)(void *context, struct problem *problem);
	/* libkymo is to leave this process (the one attached to, or a child of its), or has left.
	 */
	void (*leave_process)(void *context, pid_t pid, bool left);
	/* It has left, or the process has ended; results are not written yet. Also after errors. */
	void (*end)(void *context, struct launch *launch);
	void *context;
};

/* An exit status. `pid` is what the user wrote; `beside` may be NULL. */
int attach_and_profile_process(const char *pid, struct effective_settings *settings,
			       const struct attach_callbacks *beside);

#endif

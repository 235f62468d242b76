/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a process that kymo attaches to is given: a directory that it can write to, a lock that says
 * how long kymo is there, and the settings.
 */
#ifndef KYMO_LAUNCH_ATTACH_SESSION_H
#define KYMO_LAUNCH_ATTACH_SESSION_H

#include <stddef.h>

#include "inject/inject.h"
#include "launch/launch.h"

struct attach_session {
	struct launch launch;
	char *library;
	char *words;          /* what launch.arguments points into */
	int lock;             /* -1: none */
	char *settings_block; /* settings, as kymo_attach() in libkymo takes them */
	size_t settings_block_bytes;
};

/* Makes everything but the settings. `settings` may be changed: where the process belongs to
 * another user its data is kept in memory. 0 or negative errno. */
int attach_session_create(struct attach_session *session, struct effective_settings *settings,
			  const struct injection_target *target, struct problem *problem);
/* The same for a process that nothing is loaded into. */
int attach_session_create_outside(struct attach_session *session,
				  struct effective_settings *settings, pid_t pid,
				  struct problem *problem);
/* session->block. */
int attach_session_create_settings_block(struct attach_session *session,
					 const struct injection_target *target,
					 struct problem *problem);
/* The process may leave. */
void attach_session_release_lock(struct attach_session *session);
void attach_session_destroy(struct attach_session *session);

#endif

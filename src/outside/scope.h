/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which part of the machine is sampled: all of it, a control group (cgroups(7)) with all below it,
 * or the processes of a user.
 */
#ifndef KYMO_OUTSIDE_SCOPE_H
#define KYMO_OUTSIDE_SCOPE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/problem.h"

enum outside_scope_kind { OUTSIDE_SCOPE_ALL, OUTSIDE_SCOPE_CGROUP, OUTSIDE_SCOPE_USER };

#define OUTSIDE_CONTROLLERS_BYTES 128

struct outside_scope {
	enum outside_scope_kind kind;
	/* As in /proc/PID/cgroup: "" is version 2's hierarchy. */
	char controllers[OUTSIDE_CONTROLLERS_BYTES];
	char *cgroup;  /* path in its hierarchy, without a slash at the end; malloc'ed */
	int directory; /* of the group, where the kernel can select by it (PERF_FLAG_PID_CGROUP);
			  otherwise -1, and /proc/PID/cgroup tells */
	uid_t user;
};

#define OUTSIDE_SCOPE_INITIALIZER                                                                  \
	{                                                                                          \
		.directory = -1                                                                    \
	}

/* A path below /sys/fs/cgroup, or in a hierarchy as /proc/PID/cgroup has it. 0 or negative errno.
 */
int outside_scope_set_cgroup(struct outside_scope *scope, const char *path,
			     struct problem *problem);
/* The control group whose name has this container's ID, or its beginning. */
int outside_scope_set_container(struct outside_scope *scope, const char *id,
				struct problem *problem);
/* A name or a number. */
int outside_scope_set_user(struct outside_scope *scope, const char *user, struct problem *problem);
void outside_scope_deinit(struct outside_scope *scope);

/* Whether the kernel selects what is sampled, so that processes need not be looked at. */
static inline bool outside_scope_is_left_to_kernel(const struct outside_scope *scope)
{
	return scope->kind == OUTSIDE_SCOPE_ALL || scope->directory >= 0;
}

/* Looks at a process: 1 it belongs to the scope, 0 it does not, -ESRCH it is gone. */
int outside_scope_check_process(const struct outside_scope *scope, uint32_t pid);
/* The control group of a process that says most: of version 2's hierarchy if that groups processes,
 * else of another. Malloc'ed; NULL: it is gone. */
char *outside_scope_read_cgroup(const struct outside_scope *scope, uint32_t pid);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where hierarchies of control groups are mounted, and the groups in them (cgroups(7)).
 */
#ifndef KYMO_OUTSIDE_CGROUP_TREE_H
#define KYMO_OUTSIDE_CGROUP_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "outside/scope.h"

struct cgroup_mount {
	char *directory;
	char *root; /* the group that is mounted there; "" is the hierarchy's own */
	char controllers[OUTSIDE_CONTROLLERS_BYTES];
	bool has_perf_events; /* the kernel can select samples by its groups */
};

/* Hierarchies with perf events come first. *ret is malloc'ed; the number, or negative errno. */
int cgroup_mounts_read(struct cgroup_mount **ret);
void cgroup_mounts_free(struct cgroup_mount *mounts, int count);

/* Calls `each` with the path of every group below a mount, from the mount's directory on, outer
 * ones first; `each` returns whether to look below it. */
void cgroup_mount_visit(const struct cgroup_mount *mount,
			bool (*each)(void *context, const char *path), void *context);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The CPU limit of the control group that the process is in, and how often it stopped the group
 * (cgroups(7), cpu.stat; versions 1 and 2 of the interface).
 */
#ifndef KYMO_CORE_PROCESS_CGROUP_CPU_H
#define KYMO_CORE_PROCESS_CGROUP_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* Sums over the group and those that it is in, as far as they are mounted here: each of them may
 * have a limit. */
struct cgroup_cpu_limits {
	uint64_t limit_millicpus; /* the least one, thousandths of a CPU; 0: there is none */
	uint64_t enforcement_period_count; /* in which a limit was enforced */
	uint64_t throttled_period_count;   /* in which the group was stopped */
	uint64_t throttled_ns;             /* for which it was, all CPUs together */
};

/* Finds the group of this process. */
void cgroup_cpu_find_cgroup_of_process(void);
/* False: it was not found, or there is nothing to say. */
bool cgroup_cpu_read(struct cgroup_cpu_limits *ret);

/* For tests: the directory of the group, given the text of /proc/self/cgroup and
 * /proc/self/mountinfo. `version` is set to 1 or 2, `top` to the length of the mount point. */
bool cgroup_cpu_find_directory(const char *groups, const char *mounts, char *directory,
			       uint32_t size, int *version, uint32_t *top);

#endif

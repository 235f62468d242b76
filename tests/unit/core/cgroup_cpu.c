/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where a process's control group is, by the texts of /proc of several machines.
 */
#include "unit/core/core_test.h"

#include "core/process/cgroup_cpu.h"

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

static void expect(const char *groups, const char *mounts, const char *directory, int version,
		   uint32_t top)
{
	char found[256];
	int found_version;
	uint32_t found_top;

	assert_true(cgroup_cpu_find_directory(groups, mounts, found, sizeof(found), &found_version,
					      &found_top));
	assert_string_equal(found, directory);
	assert_int_equal(found_version, version);
	assert_int_equal(found_top, top);
}

static void version_2(void **state)
{
	(void)state;
	expect("0::/user.slice/run.scope\n", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" V2_MOUNT,
	       "/sys/fs/cgroup/user.slice/run.scope", 2, 14);
}

/* In a container's own name space the group is the root of what is mounted. */
static void version_2_in_a_container(void **state)
{
	(void)state;
	expect("0::/\n", V2_MOUNT, "/sys/fs/cgroup", 2, 14);
}

/* The CPU controller is in version 1, others may be in 2. */
static void both_versions(void **state)
{
	(void)state;
	expect("4:memory:/a\n3:cpuset:/b\n2:cpu,cpuacct:/jobs/7\n0::/c\n",
	       "31 30 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	       "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	       "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
	       "/sys/fs/cgroup/cpu,cpuacct/jobs/7", 1, 26);
}

/* Docker with version 1: the container's part is mounted, the path is the host's. */
static void version_1_in_a_container(void **state)
{
	(void)state;
	expect("2:cpu:/docker/abc/inner\n",
	       "32 30 0:28 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
	       "/sys/fs/cgroup/cpu/inner", 1, 18);
}

static void nothing_there(void **state)
{
	char found[256];
	int version;
	uint32_t top;

	(void)state;
	assert_false(cgroup_cpu_find_directory("", "", found, sizeof(found), &version, &top));
	assert_false(cgroup_cpu_find_directory("0::/a\n", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
					       found, sizeof(found), &version, &top));
	assert_false(cgroup_cpu_find_directory("0::/a\n", "30 23 0:26 / /sys", found, sizeof(found),
					       &version, &top));
	assert_false(cgroup_cpu_find_directory("0::/a\n", V2_MOUNT, found, 10, &version, &top));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2),     cmocka_unit_test(version_2_in_a_container),
		cmocka_unit_test(both_versions), cmocka_unit_test(version_1_in_a_container),
		cmocka_unit_test(nothing_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

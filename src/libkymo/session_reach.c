/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See session_reach.h. The kernel says what this thread may do now. Capabilities that a change of
 * user left it (PR_SET_KEEPCAPS) are gone once a program is executed (capabilities(7)), so modes
 * and owners are looked at as well.
 */
#include "libkymo/session_reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "common/syscalls.h"
#include "core/notices.h"
#include "core/runtime.h"

#define USER_GROUPS_MAX           256
#define OBSTACLE_NO_RIGHTS_TEXT   " was not profiled: its user may not write to the result directory"
#define OBSTACLE_UNREACHABLE_TEXT " was not profiled: it cannot reach the result directory"

static uid_t effective_user_id_at_start;
static atomic_bool fork_warning_was_posted;

static bool user_is_in_group(gid_t wanted)
{
	gid_t groups[USER_GROUPS_MAX];
	long count = sys_call2(SYS_getgroups, USER_GROUPS_MAX, (long)groups);

	for (long i = 0; i < count; i++) {
		if (groups[i] == wanted)
			return true;
	}
	return wanted == (gid_t)sys_call0(SYS_getegid);
}

/* By owner and mode alone (path_resolution(7)). */
static bool mode_permits_access(const char *path, unsigned wanted)
{
	struct stat status;
	unsigned shift;

	if (sys_call4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, 0))
		return false;
	shift = status.st_uid == (uid_t)sys_call0(SYS_geteuid) ? 6
		: user_is_in_group(status.st_gid)              ? 3
							       : 0;
	return (status.st_mode >> shift & wanted) == wanted;
}

static bool modes_permit_writing_inside_directory(const char *path)
{
	char part[PATH_MAX];
	size_t length = strlen(path);

	if (length >= sizeof(part))
		return true;
	for (size_t i = 1; i < length; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (!mode_permits_access(part, 1))
			return false;
	}
	return mode_permits_access(path, 3);
}

/* Rights that the thread has beyond its user's, and loses. */
static bool thread_has_rights_lost_by_exec(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (!sys_call0(SYS_geteuid) || sys_call2(SYS_capget, (long)&header, (long)data))
		return false;
	return data[0].effective & (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
}

void session_reach_remember_user(void)
{
	effective_user_id_at_start = (uid_t)sys_call0(SYS_geteuid);
}

const char *session_reach_find_obstacle(const struct runtime *runtime)
{
	const char *spool = runtime->options.spool_directory;

	switch (sys_call4(SYS_faccessat2, AT_FDCWD, (long)spool, W_OK | X_OK, AT_EACCESS)) {
	case -EACCES:
		return OBSTACLE_NO_RIGHTS_TEXT;
	case -ENOENT:
		return OBSTACLE_UNREACHABLE_TEXT;
	case 0:
		return thread_has_rights_lost_by_exec() &&
				       !modes_permit_writing_inside_directory(spool)
			       ? OBSTACLE_NO_RIGHTS_TEXT
			       : NULL;
	default:
		return NULL;
	}
}

void session_reach_warn_after_fork(struct runtime *runtime)
{
	char path[PATH_MAX];
	long length;

	if ((uid_t)sys_call0(SYS_geteuid) == effective_user_id_at_start || !runtime_is_active() ||
	    !runtime->options.follow_children || !session_reach_find_obstacle(runtime) ||
	    atomic_exchange(&fork_warning_was_posted, true))
		return;
	length = sys_call3(SYS_readlink, (long)"/proc/self/exe", (long)path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	notices_post(&runtime->background, SPOOL_NOTICE_NOT_FOLLOWED, 0, path,
		     ": processes that it forked were not profiled: it has changed its user, who "
		     "may not write to the result directory");
}

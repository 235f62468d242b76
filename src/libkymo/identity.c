/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of calls that change who the process is. libc passes set-id calls on to the threads that
 * it knows; kymo's own must follow, or a process that gave up its rights would keep a thread that
 * has them.
 */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "core/runtime.h"
#include "libkymo/real.h"

#define FOLLOW_NS 100000000ull

static int follow(int result)
{
	int error = errno;

	if (!result && runtime_active() && !(kymo_thread && kymo_thread->sealed) &&
	    kymo_runtime.pid == (uint32_t)sys_getpid()) {
		own_thread_note_credentials();
		background_flush(&kymo_runtime.background, FOLLOW_NS);
		allocators_wake(&kymo_runtime.allocators);
	}
	errno = error;
	return result;
}

EXPORTED int setuid(uid_t user)
{
	return follow(REAL(setuid)(user));
}

EXPORTED int seteuid(uid_t user)
{
	return follow(REAL(seteuid)(user));
}

EXPORTED int setreuid(uid_t real, uid_t effective)
{
	return follow(REAL(setreuid)(real, effective));
}

EXPORTED int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	return follow(REAL(setresuid)(real, effective, saved));
}

EXPORTED int setgid(gid_t group)
{
	return follow(REAL(setgid)(group));
}

EXPORTED int setegid(gid_t group)
{
	return follow(REAL(setegid)(group));
}

EXPORTED int setregid(gid_t real, gid_t effective)
{
	return follow(REAL(setregid)(real, effective));
}

EXPORTED int setresgid(gid_t real, gid_t effective, gid_t saved)
{
	return follow(REAL(setresgid)(real, effective, saved));
}

EXPORTED int setgroups(size_t count, const gid_t *groups)
{
	return follow(REAL(setgroups)(count, groups));
}

EXPORTED int initgroups(const char *user, gid_t group)
{
	return follow(REAL(initgroups)(user, group));
}

/* A new user namespace is refused to processes with more than one thread (unshare(2), setns(2)). */
EXPORTED int unshare(int flags)
{
	bool suspended = flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM) &&
			 runtime_suspend("the program changes its user namespace");
	int result = REAL(unshare)(flags), error = errno;

	if (suspended)
		runtime_resume();
	errno = error;
	return result;
}

EXPORTED int setns(int fd, int kind)
{
	bool suspended = (!kind || kind & CLONE_NEWUSER) &&
			 runtime_suspend("the program changes its namespace");
	int result = REAL(setns)(fd, kind), error = errno;

	if (suspended)
		runtime_resume();
	errno = error;
	return result;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of calls that change who the process is. libc passes set-id calls on to the threads that
 * it knows; the helper, which has the same memory, must follow, or a process that gave up its
 * rights could take them from there.
 */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "core/runtime.h"
#include "libkymo/dormant.h"
#include "libkymo/real.h"

#define OWN_THREADS_APPLY_CREDENTIALS_TIMEOUT_NS 100000000ull

static int apply_credentials_change_to_own_threads(int result)
{
	struct runtime *runtime = &kymo_runtime;
	int error;

	if (result || !runtime_is_active() || !thread_pointer_is_usable() ||
	    (kymo_thread && kymo_thread->has_own_seccomp_filter) ||
	    kymo_process.pid != (uint32_t)sys_getpid())
		return result;
	error = errno;
	own_threads_publish_credentials();
	chunk_allocators_wake_all_threads(&runtime->chunk_allocators);
	wall_sampler_wake(&runtime->wall_sampler);
	background_request_flush_and_wait(&runtime->background,
					  OWN_THREADS_APPLY_CREDENTIALS_TIMEOUT_NS);
	own_threads_wait_until_credentials_applied(OWN_THREADS_APPLY_CREDENTIALS_TIMEOUT_NS);
	errno = error;
	return result;
}

EXPORTED int setuid(uid_t user)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(setuid)(user));
}

EXPORTED int seteuid(uid_t user)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(seteuid)(user));
}

EXPORTED int setreuid(uid_t real, uid_t effective)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(setreuid)(real, effective));
}

EXPORTED int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(setresuid)(real, effective, saved));
}

EXPORTED int setgid(gid_t group)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(setgid)(group));
}

EXPORTED int setegid(gid_t group)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(setegid)(group));
}

EXPORTED int setregid(gid_t real, gid_t effective)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(setregid)(real, effective));
}

EXPORTED int setresgid(gid_t real, gid_t effective, gid_t saved)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(setresgid)(real, effective, saved));
}

EXPORTED int setgroups(size_t count, const gid_t *groups)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(setgroups)(count, groups));
}

EXPORTED int initgroups(const char *user, gid_t group)
{
	dormant_wake();
	return apply_credentials_change_to_own_threads(REAL(initgroups)(user, group));
}

/* The helper's rights would stay those outside of a new user namespace; and a few of these calls
 * are refused to processes whose memory somebody shares (unshare(2), setns(2)). */
EXPORTED int unshare(int flags)
{
	bool suspended;
	int result, error;

	dormant_wake();
	suspended = flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM) &&
		    runtime_try_end_kymo_threads("the program changes its user namespace");
	result = REAL(unshare)(flags);
	if (!suspended)
		return result;
	error = errno;
	runtime_restart_kymo_threads();
	errno = error;
	return result;
}

EXPORTED int setns(int fd, int kind)
{
	bool suspended;
	int result, error;

	dormant_wake();
	suspended = (!kind || kind & (CLONE_NEWUSER | CLONE_NEWTIME)) &&
		    runtime_try_end_kymo_threads("the program changes its namespace");
	result = REAL(setns)(fd, kind);
	if (!suspended)
		return result;
	error = errno;
	runtime_restart_kymo_threads();
	errno = error;
	return result;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of calls whose result a sampling signal could change, or that change what kymo may do.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "core/base/ticks.h"
#include "core/helper.h"
#include "core/interpreters/interpreters.h"
#include "core/runtime.h"
#include "libkymo/dormant.h"
#include "libkymo/real.h"
#include "libkymo/seccomp.h"
#include "libkymo/signals.h"
#include "regions/regions.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH /* Linux 5.11 */
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#define PR_SYS_DISPATCH_ON           1
#endif

/* A blocking write that our signal cuts short goes on: without kymo it would have written
 * everything. When nothing more can be written the count so far stands, as it would have. */
EXPORTED ssize_t write(int fd, const void *buffer, size_t size)
{
	bool sampled =
		(runtime_is_active() || dormant_is_this_process()) && thread_pointer_is_usable();
	struct thread *thread = sampled ? kymo_thread : NULL;
	uint64_t signals = thread ? thread->signal_count : 0;
	ssize_t done = REAL(write)(fd, buffer, size);
	int error;

	if (!thread || done <= 0 || (size_t)done >= size)
		return done;
	error = errno;
	while ((size_t)done < size && thread->signal_count != signals &&
	       !atomic_load_explicit(&kymo_runtime.signals.has_program_handlers,
				     memory_order_relaxed)) {
		ssize_t more;
		signals = thread->signal_count;
		more = REAL(write)(fd, (const char *)buffer + done, size - (size_t)done);
		if (more <= 0)
			break;
		done += more;
	}
	errno = error;
	return done;
}

/* After this, addresses may belong to another library. */
EXPORTED int dlclose(void *handle)
{
	bool is_seen = runtime_is_active() && thread_pointer_is_usable() &&
		       !(kymo_thread && kymo_thread->has_own_seccomp_filter);
	int result;

	if (is_seen)
		interpreters_pause(); /* it may be in what is unmapped now */
	result = REAL(dlclose)(handle);
	if (is_seen) {
		interpreters_resume_mapped();
		struct runtime *runtime = &kymo_runtime;
		atomic_store_explicit(&runtime->modules.stale, 1, memory_order_relaxed);
		modules_request_refresh(&runtime->modules);
		background_wake(&runtime->background);
	}
	return result;
}

/* What the thread is not to do from here on, kymo must not do for it. */
static struct seccomp_entry prepare_restriction(int option, const unsigned long *argument)
{
	struct seccomp_entry none = {.thread = NULL};

	if (option == PR_SET_SECCOMP)
		return seccomp_prepare_entry(argument[0], 0, (const void *)argument[1]);
	if (option == PR_SET_SYSCALL_USER_DISPATCH && argument[0] == PR_SYS_DISPATCH_ON)
		return seccomp_prepare_call_dispatch();
	if (option == PR_SET_TSC && argument[0] == PR_TSC_SIGSEGV) {
		regions_leave_tsc();
		ticks_leave_tsc();
	}
	return none;
}

EXPORTED int prctl(int option, ...)
{
	struct seccomp_entry entry;
	unsigned long argument[4];
	va_list list;
	int result;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		argument[i] = va_arg(list, unsigned long);
	va_end(list);
	entry = prepare_restriction(option, argument);
	result = REAL(prctl)(option, argument[0], argument[1], argument[2], argument[3]);
	seccomp_finish_entry(&entry, !result);
	if (option == PR_SET_SYSCALL_USER_DISPATCH && !result && argument[0] == PR_SYS_DISPATCH_OFF)
		seccomp_end_call_dispatch();
	if (option == PR_SET_CHILD_SUBREAPER && !result)
		helper_record_if_program_is_subreaper(kymo_runtime.options.spool_directory);
	return result;
}

static long enter_seccomp(long operation, long flags, const void *program)
{
	unsigned long mode = 0;
	struct seccomp_entry entry;
	long result;

	if (operation == SECCOMP_SET_MODE_STRICT)
		mode = SECCOMP_MODE_STRICT;
	else if (operation == SECCOMP_SET_MODE_FILTER)
		mode = SECCOMP_MODE_FILTER;
	entry = seccomp_prepare_entry(mode, (unsigned long)flags, program);
	result = REAL(syscall)(SYS_seccomp, operation, flags, program);
	/* A descriptor, where SECCOMP_FILTER_FLAG_NEW_LISTENER asks for one. */
	seccomp_finish_entry(&entry, result >= 0 && !(flags & SECCOMP_FILTER_FLAG_TSYNC && result));
	return result;
}

EXPORTED long syscall(long number, ...)
{
	long argument[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	switch (number) {
	case SYS_seccomp:
		return enter_seccomp(argument[0], argument[1], (const void *)argument[2]);
	case SYS_prctl:
		return prctl((int)argument[0], argument[1], argument[2], argument[3], argument[4]);
	case SYS_rt_sigprocmask:
		return signals_set_program_mask_by_syscall(argument[0], (const void *)argument[1],
							   (void *)argument[2], argument[3]);
	case SYS_execve:
		return execve((const char *)argument[0], (char **)argument[1],
			      (char **)argument[2]);
	case SYS_execveat:
		return execveat((int)argument[0], (const char *)argument[1], (char **)argument[2],
				(char **)argument[3], (int)argument[4]);
	}
	return REAL(syscall)(number, argument[0], argument[1], argument[2], argument[3],
			     argument[4], argument[5]);
}

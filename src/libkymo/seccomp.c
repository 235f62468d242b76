/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See seccomp.h.
 */
#include "libkymo/seccomp.h"

#include <errno.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "common/syscalls.h"
#include "core/base/fork_state.h"
#include "core/runtime.h"
#include "libkymo/dormant.h"

#define START_TIMEOUT_NS 2000000000ull

static struct runtime *const collector = &kymo_runtime;

static bool read_program_memory(const void *from, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)from, size};

	return sys_call6(SYS_process_vm_readv, (long)sys_getpid(), (long)&here, 1, (long)&there, 1,
			 0) == (long)size;
}

/* The kernel's own checks that need no privilege (kernel/seccomp.c, net/core/filter.c). */
static bool can_filter_be_loaded(const void *program)
{
	struct sock_fprog head;
	struct sock_filter step;

	return read_program_memory(program, &head, sizeof(head)) && head.len &&
	       head.len <= BPF_MAXINSNS && read_program_memory(head.filter, &step, sizeof(step)) &&
	       read_program_memory(head.filter + head.len - 1, &step, sizeof(step)) &&
	       BPF_CLASS(step.code) == BPF_RET;
}

static bool can_call_succeed(unsigned long mode, unsigned long flags, const void *program)
{
	if (mode == SECCOMP_MODE_STRICT)
		return !flags;
	return mode == SECCOMP_MODE_FILTER && can_filter_be_loaded(program);
}

/* In a child that was just forked, collection may be about to begin: what is stopped is what has
 * started. */
static bool is_collection_started(void)
{
	dormant_wake();
	if (kymo_process.state == RUNTIME_STARTING && process_is_where_runtime_started())
		background_wait_for_stage(&collector->background, BACKGROUND_STAGE_COLLECTING,
					  START_TIMEOUT_NS);
	return runtime_is_active_or_starting();
}

static struct thread *leave_this_thread_alone(void)
{
	struct thread *thread = runtime_stop_thread_sampling_for_exec();

	if (!thread)
		return NULL;
	thread->has_own_seccomp_filter = true;
	kymo_process.in_seccomp++;
	return thread;
}

struct seccomp_entry seccomp_prepare_entry(unsigned long mode, unsigned long flags,
					   const void *program)
{
	struct seccomp_entry entry = {.thread = NULL};

	/* In an earlier filter nothing can be asked; in a child that shares the memory there is
	 * nothing to stop. */
	if (!mode || is_calling_thread_off_limits() || kymo_process.pid != (uint32_t)sys_getpid() ||
	    !can_call_succeed(mode, flags, program))
		return entry;
	if (!is_collection_started())
		return entry;
	if (flags & SECCOMP_FILTER_FLAG_TSYNC) {
		entry.is_collection_ended = true;
		entry.is_only_thread = collector->background.program_thread_count <= 1;
		spool_count_loss(&collector->spool, SPOOL_LOSS_SECCOMP);
		runtime_stop_for_good("the program put all its threads into a seccomp sandbox: "
				      "collection ended");
		return entry;
	}
	entry.thread = leave_this_thread_alone();
	return entry;
}

struct seccomp_entry seccomp_prepare_call_dispatch(void)
{
	struct seccomp_entry entry = {.thread = NULL};

	if (is_calling_thread_off_limits() || kymo_process.pid != (uint32_t)sys_getpid())
		return entry;
	if (!is_collection_started())
		return entry;
	entry.thread = leave_this_thread_alone();
	if (entry.thread)
		entry.thread->dispatches_own_calls = true;
	return entry;
}

void seccomp_end_call_dispatch(void)
{
	struct thread *thread;

	if (!runtime_is_active() || !thread_pointer_is_usable())
		return;
	thread = kymo_thread;
	if (thread && thread->dispatches_own_calls) {
		struct seccomp_entry entry = {.thread = thread};

		seccomp_finish_entry(&entry, false);
	}
}

KYMO_FORK_CODE void seccomp_forget_call_dispatch_in_child(void)
{
	if (!process_has_seccomp_thread() || !kymo_thread || !kymo_thread->dispatches_own_calls)
		return;
	kymo_thread->has_own_seccomp_filter = kymo_thread->dispatches_own_calls = false;
	kymo_process.in_seccomp--;
}

void seccomp_finish_entry(const struct seccomp_entry *entry, bool entered)
{
	int error;

	if (!entry->thread && !entry->is_collection_ended)
		return;
	error = errno;
	if (entered) {
		if (entry->thread)
			spool_count_loss(&collector->spool, SPOOL_LOSS_SECCOMP);
	} else if (entry->thread) {
		entry->thread->has_own_seccomp_filter = false;
		entry->thread->dispatches_own_calls = false;
		kymo_process.in_seccomp--;
		runtime_resume_after_failed_exec(entry->thread);
	} else if (entry->is_collection_ended && entry->is_only_thread) {
		runtime_restart_kymo_threads();
	}
	errno = error;
}

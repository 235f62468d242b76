/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_thread.h.
 */
#include "core/own_thread.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "common/syscalls.h"
#include "core/allocators.h"
#include "core/base/ticks.h"
#include "core/helper.h"
#include "core/process/own_task.h"
#include "core/process/program_signals.h"
#include "core/threads.h"

#define OWN_THREAD_STACK_SIZE (256u << 10)
/* Behind it, so that what the kernel puts there next does not look like more of this stack: whoever
 * reads the stacks of a process that stands (inject/commit_moves.c) reads to the end of the
 * mapping.
 */
#define STACK_GUARD_SIZE 4096u
#define OWN_THREAD_CLONE_FLAGS                                                                     \
	(CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_UNTRACED | CLONE_SETTLS |      \
	 CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define OWN_THREADS_MAX (CHUNK_ALLOCATORS_MAX + 8u)

#define SUPPLEMENTARY_GROUPS_MAX 1024

static struct {
	_Atomic uint32_t credentials_version, lock;
	uint32_t user_ids[3], group_ids[3];
	int supplementary_group_count;
	uint32_t supplementary_group_ids[SUPPLEMENTARY_GROUPS_MAX];
} credentials;

static _Atomic(struct own_thread *) running_own_threads[OWN_THREADS_MAX],
	requested_own_threads[OWN_THREADS_MAX];

static void run_own_thread(void *argument)
{
	struct own_thread *thread = argument;

	if (!helper_is_current_process())
		own_task_close_descriptors_from(0);
	sys_call2(SYS_prctl, PR_SET_NAME, (long)thread->name);
	thread->run(thread->argument);
	for (;;)
		sys_call1(SYS_exit, 0);
}

/* One place for each thread, wherever it is started. */
static void add_own_thread_to_list(_Atomic(struct own_thread *) *list, struct own_thread *thread)
{
	for (unsigned i = 0; i < OWN_THREADS_MAX; i++) {
		struct own_thread *none = NULL;

		if (atomic_load(&list[i]) == thread ||
		    atomic_compare_exchange_strong(&list[i], &none, thread) || none == thread)
			return;
	}
}

void own_threads_clear_lists(void)
{
	for (unsigned i = 0; i < OWN_THREADS_MAX; i++)
		running_own_threads[i] = requested_own_threads[i] = NULL;
}

unsigned own_threads_count_running(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < OWN_THREADS_MAX; i++) {
		const struct own_thread *thread = atomic_load(&running_own_threads[i]);

		count += thread && atomic_load(&thread->tid);
	}
	return count;
}

bool own_threads_any_matches(bool (*is_in)(uint32_t number))
{
	for (unsigned i = 0; i < OWN_THREADS_MAX; i++) {
		const struct own_thread *thread = atomic_load(&running_own_threads[i]);

		if (thread && thread->number && is_in(thread->number))
			return true;
	}
	return false;
}

static bool map_own_thread_stack(struct own_thread *thread)
{
	uint8_t *memory = thread->stack;

	if (memory)
		return true;
	memory = sys_mmap(NULL, OWN_THREAD_STACK_SIZE + OWN_TASK_TLS_SIZE + STACK_GUARD_SIZE,
			  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			  0);
	if (sys_mmap_failed(memory))
		return false;
	sys_madvise(memory, OWN_THREAD_STACK_SIZE + OWN_TASK_TLS_SIZE, MADV_WIPEONFORK);
	sys_call3(SYS_mprotect, (long)(memory + OWN_THREAD_STACK_SIZE + OWN_TASK_TLS_SIZE),
		  STACK_GUARD_SIZE, PROT_NONE);
	thread->stack = memory;
	return true;
}

int own_thread_start(struct own_thread *thread, const char *name, void (*run)(void *argument),
		     void *argument)
{
	/* The helper's threads have one descriptor table, which is not the program's. */
	unsigned long flags =
		OWN_THREAD_CLONE_FLAGS | (helper_is_current_process() ? CLONE_FILES : 0);
	uint64_t all = ~0ull, mask = 0;
	uint8_t *memory;
	long result;

	if (!map_own_thread_stack(thread))
		return -ENOMEM;
	memory = thread->stack;
	thread->run = run;
	thread->argument = argument;
	thread->name = name;
	atomic_store(&thread->tid, 0);
	own_thread_mark_credentials_current(thread);
	add_own_thread_to_list(running_own_threads, thread);
	call_rt_sigprocmask(SIG_BLOCK, &all, &mask);
	result = own_task_clone(flags, memory + OWN_THREAD_STACK_SIZE, &thread->tid,
				own_task_init_tls(memory + OWN_THREAD_STACK_SIZE), run_own_thread,
				thread);
	call_rt_sigprocmask(SIG_SETMASK, &mask, NULL);
	thread->number = result < 0 ? 0 : (uint32_t)result;
	return result < 0 ? (int)result : 0;
}

void own_thread_request_start(struct own_thread *thread, const char *name,
			      void (*run)(void *argument), void *argument, struct threads *threads)
{
	threads_note_creation_begin(threads);
	thread->name = name;
	thread->run = run;
	thread->argument = argument;
	add_own_thread_to_list(requested_own_threads, thread);
}

void own_threads_start_all_requested(struct threads *threads)
{
	for (unsigned i = 0; i < OWN_THREADS_MAX; i++) {
		struct own_thread *thread = atomic_exchange(&requested_own_threads[i], NULL);

		if (thread && own_thread_start(thread, thread->name, thread->run, thread->argument))
			threads_note_creation_end(threads);
	}
}

int own_thread_start_with_registry_block(struct own_thread *thread, const char *name,
					 void (*run)(void *argument), void *argument,
					 struct threads *threads)
{
	int error;

	threads_note_creation_begin(threads);
	error = own_thread_start(thread, name, run, argument);
	if (error)
		threads_note_creation_end(threads);
	return error;
}

void own_thread_announce_registry_block(const struct own_thread *thread, struct threads *threads,
					struct thread *block)
{
	threads_bind_own_tid(threads, block, thread->tid);
	block->start_ticks = ticks_now();
	threads_hand_block_to_background(threads, block, THREAD_ANNOUNCED_NEW);
	threads_note_creation_end(threads);
}

bool own_thread_is_gone(const struct own_thread *thread)
{
	return !atomic_load(&thread->tid);
}

void own_thread_mark_credentials_current(struct own_thread *thread)
{
	thread->credentials = atomic_load(&credentials.credentials_version);
}

bool own_thread_has_latest_credentials(const struct own_thread *thread)
{
	return atomic_load(&thread->credentials) == atomic_load(&credentials.credentials_version);
}

void own_threads_wait_until_credentials_applied(uint64_t timeout_ns)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns;

	for (unsigned i = 0; i < OWN_THREADS_MAX; i++) {
		const struct own_thread *thread = atomic_load(&running_own_threads[i]);

		while (thread && atomic_load(&thread->tid) &&
		       !own_thread_has_latest_credentials(thread)) {
			if (read_posix_clock_ns(CLOCK_MONOTONIC) >= end)
				return;
			sys_call0(SYS_sched_yield);
		}
	}
}

void own_threads_publish_credentials(void)
{
	while (atomic_exchange_explicit(&credentials.lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	sys_call3(SYS_getresuid, (long)&credentials.user_ids[0], (long)&credentials.user_ids[1],
		  (long)&credentials.user_ids[2]);
	sys_call3(SYS_getresgid, (long)&credentials.group_ids[0], (long)&credentials.group_ids[1],
		  (long)&credentials.group_ids[2]);
	credentials.supplementary_group_count = (int)sys_call2(
		SYS_getgroups, SUPPLEMENTARY_GROUPS_MAX, (long)credentials.supplementary_group_ids);
	atomic_fetch_add(&credentials.credentials_version, 1);
	atomic_store_explicit(&credentials.lock, 0, memory_order_release);
}

bool own_thread_apply_credentials_if_new(struct own_thread *thread)
{
	uint32_t version = atomic_load(&credentials.credentials_version);

	if (version == thread->credentials)
		return false;
	while (atomic_exchange_explicit(&credentials.lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	/* groups first: without the user's rights they could not be changed any more */
	if (credentials.supplementary_group_count >= 0)
		sys_call2(SYS_setgroups, credentials.supplementary_group_count,
			  (long)credentials.supplementary_group_ids);
	sys_call3(SYS_setresgid, credentials.group_ids[0], credentials.group_ids[1],
		  credentials.group_ids[2]);
	sys_call3(SYS_setresuid, credentials.user_ids[0], credentials.user_ids[1],
		  credentials.user_ids[2]);
	atomic_store(&thread->credentials, version);
	atomic_store_explicit(&credentials.lock, 0, memory_order_release);
	return true;
}

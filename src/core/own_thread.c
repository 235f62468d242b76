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
#include <sys/resource.h>

#include "common/syscalls.h"
#include "core/program_signals.h"
#include "core/threads.h"
#include "core/ticks.h"

#define STACK_SIZE (256u << 10)
/* Room around the thread pointer: libc functions that look at their thread-local data (errno, stack
 * guard) find zeros of their own instead of the program's. */
#define TLS_SIZE 65536u
/* Behind it, so that what the kernel puts there next does not look like more of this stack: whoever
 * reads the stacks of a process that stands (inject/commit_moves.c) reads to the end of the
 * mapping.
 */
#define END_SIZE 4096u
#define FLAGS    (CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS)

#define GROUPS_MAX 1024

static struct {
	_Atomic uint32_t version, lock;
	uint32_t user[3], group[3];
	int group_count;
	uint32_t groups[GROUPS_MAX];
} credentials;

/* Descriptors copied from the program at clone would keep its pipes and files open. */
static void close_all_descriptors(void)
{
	struct rlimit limit;

	if (!sys_call3(SYS_close_range, 0, UINT32_MAX, 0)) /* Linux 5.9 */
		return;
	if (sys_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit))
		limit.rlim_cur = 65536;
	for (uint64_t fd = 0; fd < limit.rlim_cur && fd < 65536; fd++)
		sys_close((int)fd);
}

__attribute__((noreturn)) static void thread_main(struct own_thread *thread)
{
	close_all_descriptors();
	thread->tid = (uint32_t)sys_gettid();
	sys_call2(SYS_prctl, PR_SET_NAME, (long)thread->name);
	thread->run(thread->argument);
	for (;;)
		sys_call1(SYS_exit, 0);
}

/* clone(2) with a stack of its own: in the child, nothing of the parent's frame may be used. */
static long clone_thread(void *stack_top, void *tls, struct own_thread *thread)
{
	long result;
	register long tls_argument __asm__("r8") = (long)tls;
	register long child_tid __asm__("r10") = 0;
	register long argument __asm__("r9") = (long)thread;
	register long entry __asm__("r12") = (long)thread_main;

	__asm__ volatile("syscall\n"
			 "	testq %%rax, %%rax\n"
			 "	jnz 1f\n"
			 "	xorl %%ebp, %%ebp\n"
			 "	movq %%r9, %%rdi\n"
			 "	call *%%r12\n"
			 "	ud2\n"
			 "1:\n"
			 : "=a"(result)
			 : "0"((long)SYS_clone), "D"((long)FLAGS), "S"(stack_top), "d"(0L),
			   "r"(child_tid), "r"(tls_argument), "r"(argument), "r"(entry)
			 : "rcx", "r11", "memory");
	return result;
}

int own_thread_start(struct own_thread *thread, const char *name, void (*run)(void *argument),
		     void *argument)
{
	uint64_t all = ~0ull, mask = 0;
	uint8_t *memory = thread->stack, *pointer;
	long result;

	if (!memory) {
		memory = sys_mmap(NULL, STACK_SIZE + TLS_SIZE + END_SIZE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (sys_failed(memory))
			return -ENOMEM;
		sys_call3(SYS_mprotect, (long)(memory + STACK_SIZE + TLS_SIZE), END_SIZE,
			  PROT_NONE);
		thread->stack = memory;
	}
	thread->run = run;
	thread->argument = argument;
	thread->name = name;
	thread->tid = 0;
	thread->credentials = atomic_load(&credentials.version);
	pointer = memory + STACK_SIZE + TLS_SIZE / 2;
	*(void **)pointer = pointer; /* points to itself: System V ABI, x86-64 TLS */
	*(void **)(pointer + 16) = pointer;
	kernel_sigmask(SIG_BLOCK, &all, &mask);
	result = clone_thread(memory + STACK_SIZE - 64, pointer, thread);
	kernel_sigmask(SIG_SETMASK, &mask, NULL);
	return result < 0 ? (int)result : 0;
}

int own_thread_start_known(struct own_thread *thread, const char *name, void (*run)(void *argument),
			   void *argument, struct threads *threads)
{
	int error;

	threads_come(threads);
	error = own_thread_start(thread, name, run, argument);
	if (error)
		threads_came(threads);
	return error;
}

void own_thread_known(const struct own_thread *thread, struct threads *threads,
		      struct thread *block)
{
	threads_bind(threads, block, thread->tid);
	block->start_ticks = ticks_now();
	threads_announce(threads, block, THREAD_ANNOUNCED_NEW);
	threads_came(threads);
}

bool own_thread_is_gone(const struct own_thread *thread)
{
	return !thread->tid || sys_call3(SYS_tgkill, sys_getpid(), thread->tid, 0) == -ESRCH;
}

void own_thread_note_credentials(void)
{
	while (atomic_exchange_explicit(&credentials.lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	sys_call3(SYS_getresuid, (long)&credentials.user[0], (long)&credentials.user[1],
		  (long)&credentials.user[2]);
	sys_call3(SYS_getresgid, (long)&credentials.group[0], (long)&credentials.group[1],
		  (long)&credentials.group[2]);
	credentials.group_count =
		(int)sys_call2(SYS_getgroups, GROUPS_MAX, (long)credentials.groups);
	atomic_fetch_add(&credentials.version, 1);
	atomic_store_explicit(&credentials.lock, 0, memory_order_release);
}

void own_thread_follow_credentials(struct own_thread *thread)
{
	uint32_t version = atomic_load(&credentials.version);

	if (version == thread->credentials)
		return;
	while (atomic_exchange_explicit(&credentials.lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	/* groups first: without the user's rights they could not be changed any more */
	if (credentials.group_count >= 0)
		sys_call2(SYS_setgroups, credentials.group_count, (long)credentials.groups);
	sys_call3(SYS_setresgid, credentials.group[0], credentials.group[1], credentials.group[2]);
	sys_call3(SYS_setresuid, credentials.user[0], credentials.user[1], credentials.user[2]);
	thread->credentials = version;
	atomic_store_explicit(&credentials.lock, 0, memory_order_release);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See background.h. This file: making the thread, waking it, and its loop; what it does in each
 * round is in background_work.c.
 */
#include "core/background.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/background_work.h"
#include "core/runtime.h"
#include "core/ticks.h"

#define THREAD_FLAGS                                                                               \
	(CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS)
#define FUTEX_WAIT_PRIVATE_OPERATION (FUTEX_WAIT | FUTEX_PRIVATE_FLAG)
#define FUTEX_WAKE_PRIVATE_OPERATION (FUTEX_WAKE | FUTEX_PRIVATE_FLAG)
/* Room below and above the thread pointer of the background thread: libc functions that look at
 * their thread-local data (errno, stack guard) find zeros of its own instead of the program's. */
#define OWN_TLS 65536u

static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = {(time_t)(timeout_ns / 1000000000u),
				   (long)(timeout_ns % 1000000000u)};

	sys_call4(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE_OPERATION, value, (long)&timeout);
}

static void futex_wake(_Atomic uint32_t *word)
{
	sys_call3(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE_OPERATION, INT32_MAX);
}

void background_wake(struct background *background)
{
	/* seq_cst on both words: either the sleeper sees wake set, or we see it sleeping */
	atomic_store(&background->wake, 1);
	if (atomic_exchange(&background->sleeping, 0))
		futex_wake(&background->wake);
}

void background_throttle(struct background *background, uint64_t period)
{
	atomic_store_explicit(&background->throttle_period, period, memory_order_relaxed);
	background_wake(background);
}

static void announce_stage(struct background *background, uint32_t stage)
{
	atomic_store_explicit(&background->ready, stage, memory_order_release);
	futex_wake(&background->ready);
}

bool background_wait(struct background *background, uint32_t stage, uint64_t timeout_ns)
{
	uint64_t end = ticks_clock_ns(CLOCK_MONOTONIC) + timeout_ns, now;
	uint32_t value;

	while ((value = atomic_load_explicit(&background->ready, memory_order_acquire)) < stage) {
		now = ticks_clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return false;
		futex_wait(&background->ready, value, end - now);
	}
	return true;
}

void background_flush(struct background *background, uint64_t timeout_ns)
{
	uint64_t end = ticks_clock_ns(CLOCK_MONOTONIC) + timeout_ns, now;
	uint32_t wanted = atomic_fetch_add(&background->flush_wanted, 1) + 1, done;

	background_wake(background);
	while ((int32_t)((done = atomic_load(&background->flushed)) - wanted) < 0) {
		now = ticks_clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return;
		futex_wait(&background->flushed, done, end - now);
	}
}

static void sleep_until_wanted(struct background *background, uint64_t timeout_ns)
{
	atomic_store(&background->sleeping, 1);
	if (!atomic_load(&background->wake))
		futex_wait(&background->wake, 0, timeout_ns);
	atomic_store(&background->sleeping, 0);
	atomic_store(&background->wake, 0);
}

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

static void run(struct runtime *runtime)
{
	struct background *background = &runtime->background;

	/* Descriptors copied from the program at clone would keep its pipes and files open. */
	close_all_descriptors();
	announce_stage(background, 1);
	if (background_work_begin(runtime)) {
		announce_stage(background, 3);
		return;
	}
	announce_stage(background, 2);
	for (;;) {
		uint32_t flush = atomic_load(&background->flush_wanted);
		bool finish = atomic_exchange(&background->finish, 0);
		uint64_t wait_ns = background_work_round(runtime);
		if (finish) { /* and go on: other threads run until the process ends */
			background_work_end(runtime);
			announce_stage(background, 4);
		}
		if (atomic_load(&background->flushed) != flush) {
			atomic_store(&background->flushed, flush);
			futex_wake(&background->flushed);
		}
		sleep_until_wanted(background, wait_ns);
	}
}

__attribute__((noreturn)) static void thread_main(struct runtime *runtime)
{
	runtime->background.tid = (uint32_t)sys_gettid();
	run(runtime);
	for (;;)
		sys_call1(SYS_exit, 0);
}

/* clone(2) with a stack of its own: in the child, nothing of the parent's frame may be used. */
static long clone_thread(void *stack_top, void *tls, struct runtime *runtime)
{
	long result;
	register long tls_argument __asm__("r8") = (long)tls;
	register long child_tid __asm__("r10") = 0;
	register long argument __asm__("r9") = (long)runtime;
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
			 : "0"((long)SYS_clone), "D"((long)THREAD_FLAGS), "S"(stack_top), "d"(0L),
			   "r"(child_tid), "r"(tls_argument), "r"(argument), "r"(entry)
			 : "rcx", "r11", "memory");
	return result;
}

int background_start(struct runtime *runtime)
{
	struct background *background = &runtime->background;
	uint64_t all = ~0ull, mask = 0;
	uint8_t *memory;
	long result;

	if (!background->stack) {
		memory = sys_mmap(NULL, BACKGROUND_STACK + OWN_TLS, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (sys_failed(memory))
			return -ENOMEM;
		background->stack = memory;
	}
	memory = background->stack;
	/* The thread pointer's first word points to itself (x86-64 TLS ABI). */
	*(void **)(memory + BACKGROUND_STACK + OWN_TLS / 2) =
		memory + BACKGROUND_STACK + OWN_TLS / 2;
	*(void **)(memory + BACKGROUND_STACK + OWN_TLS / 2 + 16) =
		memory + BACKGROUND_STACK + OWN_TLS / 2;
	kernel_sigmask(SIG_BLOCK, &all, &mask);
	result = clone_thread(memory + BACKGROUND_STACK - 64,
			      memory + BACKGROUND_STACK + OWN_TLS / 2, runtime);
	kernel_sigmask(SIG_SETMASK, &mask, NULL);
	return result < 0 ? (int)result : 0;
}

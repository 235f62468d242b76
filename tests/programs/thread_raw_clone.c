/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads made by clone() behind the C library's back. They have no thread control block of their
 * own: with CLONE_SETTLS left out they even run on their creator's, so a handler that trusts its
 * thread-local variables writes into another thread's state.
 */
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"

#define THREADS    4
#define STACK_SIZE (256 << 10)

static atomic_int alive[THREADS]; /* the kernel clears it when the thread is gone */
static atomic_ulong work[THREADS];

__attribute__((noinline)) static void raw_work(int which)
{
	for (unsigned long i = 0; i < 300000000ul; i++)
		atomic_store_explicit(&work[which], i + 1, memory_order_relaxed);
}

static int thread_main(void *argument)
{
	raw_work((int)(uintptr_t)argument);
	syscall(SYS_exit, 0);
	return 0;
}

int main(void)
{
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;

	for (int i = 0; i < THREADS; i++) {
		char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

		CHECK(stack != MAP_FAILED);
		atomic_store(&alive[i], 1);
		CHECK(clone(thread_main, stack + STACK_SIZE, flags, (void *)(uintptr_t)i, NULL,
			    NULL, &alive[i]) > 0);
	}
	for (int i = 0; i < THREADS; i++)
		while (atomic_load(&alive[i]))
			syscall(SYS_futex, &alive[i], FUTEX_WAIT, 1, NULL, NULL, 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(atomic_load(&work[i]) == 300000000ul);
	return check_passed("thread_raw_clone");
}

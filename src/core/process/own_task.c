/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_task.h.
 */
#include "core/process/own_task.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/syscalls.h"

#define CLOSED_DESCRIPTORS_MAX    65536u
#define NEXT_CHILD_NAMESPACE_LINK "/proc/self/ns/pid_for_children"

void *own_task_init_tls(uint8_t *room)
{
	uint8_t *pointer = room + OWN_TASK_TLS_SIZE / 2;

	*(void **)pointer = pointer; /* points to itself: System V ABI, x86-64 TLS */
	*(void **)(pointer + 16) = pointer;
	return pointer;
}

/* In the child, nothing of the parent's frame may be used. */
long own_task_clone(unsigned long flags, void *stack_top, _Atomic uint32_t *tid, void *tls,
		    void (*entry)(void *argument), void *argument)
{
	long result;
	register long child_tid __asm__("r10") = (long)tid;
	register long tls_argument __asm__("r8") = (long)tls;
	register long entry_argument __asm__("r9") = (long)argument;
	register long entry_register __asm__("r12") = (long)entry;

	__asm__ volatile("syscall\n"
			 "	testq %%rax, %%rax\n"
			 "	jnz 1f\n"
			 "	xorl %%ebp, %%ebp\n"
			 "	movq %%r9, %%rdi\n"
			 "	call *%%r12\n"
			 "	ud2\n"
			 "1:\n"
			 : "=a"(result)
			 : "0"((long)SYS_clone), "D"(flags), "S"((uint8_t *)stack_top - 64),
			   "d"(tid), "r"(child_tid), "r"(tls_argument), "r"(entry_argument),
			   "r"(entry_register)
			 : "rcx", "r11", "memory");
	return result;
}

bool own_task_would_be_namespace_init(void)
{
	char now[64] = "", next[64] = "";
	struct stat status;
	long length =
		sys_call3(SYS_readlink, (long)"/proc/self/ns/pid", (long)now, sizeof(now) - 1);

	if (length <= 0)
		return false;
	/* A namespace that has no init yet has a file but no name (pidns_for_children_get() of the
	 * kernel). */
	if (sys_call3(SYS_readlink, (long)NEXT_CHILD_NAMESPACE_LINK, (long)next,
		      sizeof(next) - 1) <= 0)
		return !sys_call4(SYS_newfstatat, SYS_WORKING_DIRECTORY_FD,
				  (long)NEXT_CHILD_NAMESPACE_LINK, (long)&status,
				  AT_SYMLINK_NOFOLLOW);
	for (long i = 0; i < length; i++) {
		if (now[i] != next[i])
			return true;
	}
	return false;
}

bool own_task_process_is_subreaper(void)
{
	int is = 0;

	return !sys_call2(SYS_prctl, PR_GET_CHILD_SUBREAPER, (long)&is) && is;
}

void own_task_close_descriptors_from(uint32_t from)
{
	struct rlimit limit;

	if (!sys_call3(SYS_close_range, from, UINT32_MAX, 0)) /* Linux 5.9 */
		return;
	if (sys_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit))
		limit.rlim_cur = CLOSED_DESCRIPTORS_MAX;
	for (uint64_t fd = from; fd < limit.rlim_cur && fd < CLOSED_DESCRIPTORS_MAX; fd++)
		sys_close((int)fd);
}

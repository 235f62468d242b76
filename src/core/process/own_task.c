/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_task.h.
 */
#include "core/process/own_task.h"

#include <sys/resource.h>

#include "common/syscalls.h"

#define CLOSED_DESCRIPTORS_MAX 65536u

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

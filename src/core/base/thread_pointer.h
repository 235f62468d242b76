/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A task may run in the program's memory with a thread pointer that libc did not set up:
 * clone(CLONE_VM | CLONE_VFORK | CLONE_SETTLS) with a zeroed buffer is how Chromium's sandbox makes
 * one that calls chroot and _exit. There, thread-local variables lie anywhere. Calls of libc that
 * make a system call and nothing more work in such a task; so have ours to.
 */
#ifndef KYMO_CORE_BASE_THREAD_POINTER_H
#define KYMO_CORE_BASE_THREAD_POINTER_H

#include <stdbool.h>
#include <stdint.h>

/* May thread-local variables be used here? glibc's block points to itself at its start (System V
 * ABI, x86-64 TLS) and in its third word (tcbhead_t). Volatile: a clone returns twice. */
static inline bool thread_pointer_is_usable(void)
{
	uintptr_t start, self;

	__asm__ volatile("movq %%fs:0, %0\n\tmovq %%fs:16, %1" : "=r"(start), "=r"(self));
	return start && start == self;
}

#endif

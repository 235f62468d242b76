/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * May a stopped thread be made to call dlopen? Not when it is inside the loader, the allocator, or
 * one of the few functions of libc that hold a lock that dlopen takes: the call would wait for its
 * own thread, or find a free list half changed.
 *
 * The stack is unwound with the tables of the mapped files (libdwfl). Where that ends early, in
 * compiled code without tables, every word above that looks like an address in forbidden code
 * counts as a frame. In libc itself only a system call is a place to stop at.
 */
#ifndef KYMO_INJECT_STACK_H
#define KYMO_INJECT_STACK_H

#include <stdbool.h>
#include <sys/user.h>

#include "inject/process.h"

struct stack_checker;

/* Looks at what is mapped now. 0 or negative errno. */
int stack_checker_create(pid_t pid, int memory, struct stack_checker **ret);
void stack_checker_destroy(struct stack_checker *judge);
/* `registers` are those of a thread that is stopped. `ret_why` says what is in the way. */
bool stack_is_safe_for_dlopen(struct stack_checker *judge, const struct user_regs_struct *registers,
			      const char **ret_why);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tasks that share the program's memory and are made without libc (clone(2)).
 */
#ifndef KYMO_CORE_OWN_TASK_H
#define KYMO_CORE_OWN_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Room around the thread pointer: libc functions that look at their thread-local data (errno, stack
 * guard) find zeros of their own instead of the program's. */
#define OWN_TASK_TLS_SIZE 65536u

/* The thread pointer in such a room. */
void *own_task_init_tls(uint8_t *room);

/* Clones a task that calls entry(argument) on the stack and must not return from it. `tid`: where
 * CLONE_PARENT_SETTID and CLONE_CHILD_CLEARTID write. Its number, or negative errno. */
long own_task_clone(unsigned long flags, void *stack_top, _Atomic uint32_t *tid, void *tls,
		    void (*entry)(void *argument), void *argument);

/* Would the next child of this process be the init of a new pid namespace (unshare(CLONE_NEWPID))?
 * That is the program's to make. */
bool own_task_would_be_namespace_init(void);

/* Does the process adopt orphans of its own (PR_SET_CHILD_SUBREAPER)? */
bool own_task_process_is_subreaper(void);

/* Descriptors copied from the program would keep its pipes and files open. */
void own_task_close_descriptors_from(uint32_t from);

#endif

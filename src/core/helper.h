/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The helper: the process that kymo's own threads are in. It shares the program's memory and signal
 * handlers, but not its thread group, parent, session or descriptors, so that the program has no
 * thread and no child that it did not make (docs/internals/helper-task.md).
 */
#ifndef KYMO_CORE_HELPER_H
#define KYMO_CORE_HELPER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/own_thread.h"

/* Makes the helper, with `thread` as its first thread. By a thread of the program; signal-safe.
 * `directory`: that of the session's spool files, where it is noted which processes adopt orphans.
 * 0 or negative errno. */
int helper_start(struct own_thread *thread, const char *name, void (*run)(void *argument),
		 void *argument, const char *directory);
/* What the helper does last when the program has ended without a word; set before its start. */
void helper_set_program_end_callback(void (*at_end)(void *argument));
/* Where Yama lets ancestors alone look at a process (ptrace_scope 1) the program allows it the
 * helper. By a thread of the program. */
void helper_allow_to_ptrace_program(void);
/* Is the calling thread one of the helper's? */
bool helper_is_current_process(void);
/* Is it a child of the program? */
bool helper_is_program_child(void);
/* Has the helper ended, or was there none? */
bool helper_is_gone(void);
/* By a thread of the program: waits until the helper has let go of the program's memory. */
void helper_wait_until_gone(uint64_t timeout_ns);
/* The same, and until it is reaped: before that the kernel still counts it among those that share
 * the signal handlers. */
void helper_wait_until_reaped(uint64_t timeout_ns);

/* ---- within the helper ---- */

/* The program's process has another image, or has ended: there is nothing left to help with. */
bool helper_program_is_gone(void);
/* Ends the helper once its other threads are gone. Does not return. */
__attribute__((noreturn)) void helper_exit_after_threads(void);
/* Ends the helper at once. */
__attribute__((noreturn)) void helper_exit_now(void);
/* Its first task, which only waits, takes on the program's ids (own_thread.h). */
void helper_update_first_task_credentials(uint64_t timeout_ns);
/* The program's process. */
uint32_t helper_get_program_pid(void);
/* The program's directory in /proc, in the helper's descriptor table; negative: there is none. */
int helper_get_program_proc_fd(void);

/* ---- orphans ---- */

/* The calling process may be one that adopts orphans (PR_SET_CHILD_SUBREAPER): then it is noted in
 * the session that helpers below it would become its children. Signal-safe. */
void helper_record_if_program_is_subreaper(const char *directory);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Launch paths: the stacks of the calls that launch work on devices. Each distinct one has a number
 * in the process and is written to the spool file once (LAUNCH_PATH); the records of the work name
 * it by that number (kymo/gpu_records.h).
 *
 * A launch whose stack is that of a memo of its thread costs what it takes to compare some stack
 * words and to hash the interpreter's frames; others are walked from where they differ from the
 * last one. Nothing here allocates by the program's allocator, locks or waits. Stacks and tables
 * lie in memory that forked children do not have or find empty: a child begins with nothing.
 */
#ifndef KYMO_LAUNCHES_LAUNCHES_H
#define KYMO_LAUNCHES_LAUNCHES_H

#include <stdint.h>

#include "core/unwind/unwind.h"

struct runtime;

#define LAUNCH_PATH_FRAMES_MAX 256u

/* Before anything is launched: what is needed of the collector is noted. */
void launches_remember_collector(struct runtime *runtime);
/* What was found is in the file of another run. */
void launches_reset_for_new_run(void);
/* The number of the stack above these registers, which are those of the caller of a function that
 * the calling thread is in; or why there is none (enum gpu_launch_path). */
uint32_t launch_find_path(const struct unwind_start_registers *caller);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The keeper: a task that shares the program's memory, but not its thread group, descriptors or
 * signals. It writes what is new in the store to the file every 50 ms, and a last time when the
 * program has ended, however it did: the memory is there until then.
 */
#ifndef KYMO_NCCL_KEEPER_H
#define KYMO_NCCL_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

/* Once, from init. Without a keeper (a sandbox may forbid it) the own thread writes, and what came
 * after its last round is lost where the process is killed. */
void keeper_start(void);
bool keeper_is_running(void);
uint64_t keeper_get_cpu_ns(void);
/* By the program at its end: the keeper is gone when it returns, and the caller may write. */
void keeper_stop(void);
/* A forked child has none. */
void keeper_forget_after_fork(void);

#endif

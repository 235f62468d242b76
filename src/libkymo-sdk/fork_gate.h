/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of tools at a fork. What a tool's function holds on another thread, a mutex or the lock
 * of its allocator, would be held for ever in the child. So a fork waits until all of them are
 * left, and who is about to call one waits for the fork.
 *
 * Both waits have an end. A tool's function may itself wait for the thread that forks; then the
 * fork goes on, and the child goes on without that tool.
 */
#ifndef KYMO_LIBKYMO_SDK_FORK_GATE_H
#define KYMO_LIBKYMO_SDK_FORK_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* Before anything is locked for the fork. */
void sdk_fork_gate_close(void);
void sdk_fork_gate_open_in_parent(void);
/* Returns the contexts (by bit) whose functions other threads were in, in spite of it. Before
 * threads are reset. */
uint64_t sdk_fork_gate_open_in_child(void);

/* For a thread that is in no tool's function: waits until the fork is over, or for too long. */
void sdk_fork_gate_wait(void);

#endif

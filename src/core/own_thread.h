/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads of kymo inside the profiled process, made by clone(2) without libc: the program's pthread
 * functions, its "last thread exits" logic and its set-id broadcasts do not see them. They share
 * memory but not the descriptor table, so the program's descriptors are neither kept open nor used
 * up. All signals are blocked in them.
 */
#ifndef KYMO_CORE_OWN_THREAD_H
#define KYMO_CORE_OWN_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct own_thread {
	void *stack; /* kept for restarts in forked children */
	void (*run)(void *argument);
	void *argument;
	const char *name;
	uint32_t tid;
	uint32_t credentials; /* version taken on */
};

/* 0 or negative errno. The thread begins with no descriptors open and ends when run() returns. */
int own_thread_start(struct own_thread *thread, const char *name, void (*run)(void *argument),
		     void *argument);

struct thread;
struct threads;

/* The same for one that has a block in the registry. Until it has called own_thread_known(), as the
 * first thing that it does, the scan for unknown threads (live_threads.h) does not take it for one
 * of the program's. */
int own_thread_start_known(struct own_thread *thread, const char *name, void (*run)(void *argument),
			   void *argument, struct threads *threads);
void own_thread_known(const struct own_thread *thread, struct threads *threads,
		      struct thread *block);

/* Has the thread ended, as far as the kernel is concerned? */
bool own_thread_is_gone(const struct own_thread *thread);

/* The program changed its user or group ids: libc told its own threads, these are told here. Notes
 * the ids of the calling thread; own threads take them on in own_thread_follow_credentials(), which
 * their loops call. */
void own_thread_note_credentials(void);
void own_thread_follow_credentials(struct own_thread *thread);

#endif

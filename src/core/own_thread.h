/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads of kymo's own, made by clone(2) without libc: threads of the helper (helper.h), which
 * shares the program's memory. All signals are blocked in them.
 */
#ifndef KYMO_CORE_OWN_THREAD_H
#define KYMO_CORE_OWN_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct own_thread {
	void *stack; /* kept for restarts in forked children */
	void (*run)(void *argument);
	void *argument;
	const char *name;
	_Atomic uint32_t tid;         /* cleared by the kernel when the thread has ended */
	uint32_t number;              /* the same, but kept */
	_Atomic uint32_t credentials; /* version taken on */
};

/* In the calling thread's process, which is the helper. 0 or negative errno. The thread ends when
 * run() returns. */
int own_thread_start(struct own_thread *thread, const char *name, void (*run)(void *argument),
		     void *argument);

struct thread;
struct threads;

/* The same for one that has a block in the registry. Until it has called
 * own_thread_announce_registry_block(), as the first thing that it does, the scan for unknown
 * threads (live_threads.h) does not take it for one of the program's. */
int own_thread_start_with_registry_block(struct own_thread *thread, const char *name,
					 void (*run)(void *argument), void *argument,
					 struct threads *threads);
void own_thread_announce_registry_block(const struct own_thread *thread, struct threads *threads,
					struct thread *block);

/* By a thread of the program: the helper starts it in its next round (background_wake()). */
void own_thread_request_start(struct own_thread *thread, const char *name,
			      void (*run)(void *argument), void *argument, struct threads *threads);
/* The helper: starts what was asked for. */
void own_threads_start_all_requested(struct threads *threads);
/* A new helper has none yet. */
void own_threads_clear_lists(void);
unsigned own_threads_count_running(void);
/* Is one of them still in this memory, as `is_in` says of its number? */
bool own_threads_any_matches(bool (*is_in)(uint32_t number));

/* Has the thread ended, as far as the kernel is concerned? */
bool own_thread_is_gone(const struct own_thread *thread);

/* The program changed its user or group ids: libc changed its own threads, ours are changed here.
 * Notes the ids of the calling thread; own threads take them on in
 * own_thread_apply_credentials_if_new(), which their loops call. True: they were others. */
void own_threads_publish_credentials(void);
bool own_thread_apply_credentials_if_new(struct own_thread *thread);
/* By the program, for the moment in which it may change what the kernel thinks of its memory
 * (PR_SET_DUMPABLE): a thread that changes its ids later would change that back. */
void own_threads_wait_until_credentials_applied(uint64_t timeout_ns);
void own_thread_mark_credentials_current(struct own_thread *thread);
bool own_thread_has_latest_credentials(const struct own_thread *thread);

#endif

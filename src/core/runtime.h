/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The root of all state in the profiled process, and its life: started by the library's
 * constructor, restarted in forked children, finished by its destructor.
 */
#ifndef KYMO_CORE_RUNTIME_H
#define KYMO_CORE_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/allocators.h"
#include "core/background.h"
#include "core/base/options.h"
#include "core/control.h"
#include "core/modules.h"
#include "core/process/program_signals.h"
#include "core/process/state.h"
#include "core/sampler.h"
#include "core/spool/process_records.h"
#include "core/spool/writer.h"
#include "core/threads.h"
#include "core/unwind/unwind.h"
#include "core/wall_sampler.h"

/* What the room of regions does at the turns of the runtime's life (regions/regions.h). */
struct runtime_hooks {
	/* Before anything else: what is needed of the core is noted. */
	void (*on_prepare)(struct runtime *runtime);
	int (*start)(struct runtime *runtime); /* background thread, when records can be written */
	void (*on_thread_end)(void);           /* the thread itself */
	void (*on_thread_gone_silently)(
		struct thread *thread); /* background thread: it ended without a word */
	/* In the child, on its thread; before there is a file. */
	void (*forked)(void);
	/* Background thread: the process goes on without us. Nothing is collected any more; then
	 * what threads still hold of the spool is taken from them, and then from the process. */
	void (*on_detach_thread)(struct thread *thread);
	void (*on_detach_process)(void);
	void (*on_collection_switched)(void);      /* signal-safe: control.closed changed */
	void (*on_thread_exclusion_changed)(void); /* the thread itself: its `excluded` changed */
	/* Background thread, every round; `last`: at the end, or when everything is to be written.
	 */
	void (*round)(struct runtime *runtime, bool last);
	bool (*has_unwritten_records)(
		void); /* signal-safe: is there anything that only `round` writes? */
};

struct runtime {
	const struct runtime_hooks *hooks; /* may be NULL */
	struct options options;
	struct spool_writer spool;
	struct threads threads;
	struct loaded_modules modules;
	struct program_signals signals;
	struct sampler sampler;
	struct collection_control control;
	struct process_records records; /* process-level records */
	struct background_state background;
	struct chunk_allocators chunk_allocators;
	struct wall_sampler wall_sampler;
	/* Writes what changed of allocations, every round and at the end (`last`); NULL: they are
	 * not wrapped. Background thread. */
	void (*_Atomic follow_allocations)(struct runtime *runtime, bool last);
	_Atomic uint32_t walkers; /* threads not yet known here that walk their stacks: pin the view
				   */
	char *const *environment;
	bool are_parts_connected; /* the parts know each other */
	bool prepared;            /* what is made once in the life of a process is there */
	bool attached;            /* by runtime_attach(): it ends when whoever attached lets go */
	/* The library was not preloaded, so not all that the program executes and does with signals
	 * is seen. */
	bool opened;
};

/* The one runtime: for its own file, the entries of the library and the signal's handler.
 * Everything else is passed what it needs. */
extern struct runtime kymo_runtime;

/* Both of the next two. */
void runtime_start(char *const *environment);
/* Reads the options; pid and environment are known. False: nothing is to be collected. */
bool runtime_read_options(struct runtime *runtime, char *const *environment);
/* What is known of the first thread when collection begins. */
struct runtime_start_conditions {
	struct unwind_stack_bounds stack_bounds;
	bool wants_signal_blocked;
	bool forked;                  /* what is here was made in the parent */
	bool interrupted;             /* in a signal handler: the mask is the caller's care */
	uint64_t unsampled_cpu_ns;    /* CPU time that no sample will stand for */
	uint64_t sampled_from_cpu_ns; /* from where on they do; 0: now */
};
/* By the first thread, while there is no other.  False: the
 * program runs on unprofiled. */
bool runtime_begin_collection(struct runtime *runtime,
			      const struct runtime_start_conditions *beginning);
/* What a process that is dormant needs: the parts know each other, the thread's end is noticed. */
bool runtime_prepare_dormant(struct runtime *runtime);
void runtime_finish(void);
/* After fork, in the child. */
void runtime_restart_in_forked_child(void);
/* What starts in different ways have in common: makes what is made once; forgets the last run, but
 * not the threads. */
bool runtime_prepare_once(struct runtime *runtime);
void runtime_apply_options(struct runtime *runtime); /* as the options say */
void runtime_reset_state_for_new_run(struct runtime *runtime);
struct unwind_stack_bounds runtime_find_main_stack_bounds(void);

/* The calling thread is about to exec or to enter a sandbox: its sources are stopped and no signal
 * of ours is pending or will come. Returns NULL where there is nothing to stop (unknown threads,
 * vfork children). */
struct thread *runtime_stop_thread_sampling_for_exec(void);
/* The image goes and no destructor runs: what is only in memory is written. True: a round of the
 * background thread wrote something. Signal-safe. */
bool runtime_flush_and_wait_if_unwritten(void);
/* exec failed: everything as before. */
void runtime_resume_after_failed_exec(struct thread *thread);
/* Ends all collection for good: what comes next would not survive our system calls. */
void runtime_stop_for_good(const char *why);
/* Ends kymo's threads around a call that the kernel only allows in single-threaded processes, and
 * starts again. */
bool runtime_try_end_kymo_threads(const char *why);
void runtime_restart_kymo_threads(void);
/* Where the helper is a child of the program, an image that is executed would have it as a child
 * that nobody reaps, and who adopts the children of a process that ends would have one more: it is
 * ended. `always`: also while other threads run. True: it was; should exec fail,
 * runtime_restart_kymo_threads().
 */
bool runtime_end_helper_if_program_child(bool always);

/* The block of the calling thread; NULL for threads that are unknown or not to be touched (vfork
 * children). */
struct thread *runtime_find_this_thread(void);
/* The same, and kymo_thread is set: for threads that were found running. Not for handlers. */
struct thread *runtime_find_or_add_this_thread(void);
/* For the thread itself: begin and end of its registered life. Our signal must not arrive during
 * end. */
void runtime_register_this_thread(struct thread *thread);
void runtime_unregister_this_thread(struct thread *thread);

#endif

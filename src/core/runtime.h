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
#include "core/control.h"
#include "core/modules.h"
#include "core/options.h"
#include "core/program_signals.h"
#include "core/spool_writer.h"
#include "core/threads.h"
#include "core/track.h"
#include "core/unwind.h"
#include "core/wall_sampler.h"

struct sampler_stack;

enum runtime_state {
	RUNTIME_INACTIVE, /* never started, or turned off */
	RUNTIME_STARTING,
	RUNTIME_ACTIVE,
	RUNTIME_FAILED /* an internal error: the program runs on unprofiled */
};

/* What the handler and the sources need to know about how samples are taken. */
struct sampling {
	/* Outside their windows the sources are disarmed; these catch stragglers. */
	_Atomic uint32_t cpu_open, wall_open, overflow_open;
	enum spool_cpu_source source;
	int signal;       /* the one signal of all sources */
	bool perf_kernel; /* perf may count kernel time */
	uint64_t tick_hz;
	uint64_t metric_ticks; /* least time between two metric readings of a thread */
	uint64_t growth_ticks; /* a chunk that fills faster than this is followed by a large one */
	uint64_t handler_ticks_believed; /* more than this in one handler is not its own time */
	uint64_t throttle_ticks;         /* span over which the handler's share is judged */
	_Atomic uint64_t period;         /* current, after throttling */
	bool seldom;                     /* it is longer for a while */
	struct unwind_cache *cache;
	uint64_t main_stack_floor; /* as far down as the main stack may grow; 0: no limit */
	/* Of causal profiling; NULL: it is off. In the handler, with a sample's stack and the CPU
	 * time it stands for; and at the handler's end, when it holds on to nothing any more. */
	void (*_Atomic sampled)(struct thread *thread, const struct sampler_stack *stack,
				uint64_t cpu_ns, uint64_t ticks);
	void (*_Atomic settle)(struct thread *thread);
	/* A SIGTRAP of ours came: of a breakpoint (SAMPLER_MARK_POINT), or another one, which the
	 * signal of a breakpoint at the same moment has become part of. */
	void (*_Atomic visited)(uint64_t mark, const void *context);
};

/* What the room of regions does at the turns of the runtime's life (regions/regions.h). */
struct runtime_hooks {
	int (*start)(struct runtime *runtime); /* background thread, when records can be written */
	void (*thread_end)(void);              /* the thread itself */
	void (*thread_gone)(struct thread *thread); /* background thread: it ended without a word */
	/* In the child, on its thread; before there is a file. */
	void (*forked)(void);
	/* Background thread: the process goes on without us. Nothing is collected any more; then
	 * what threads still hold of the spool is taken from them, and then from the process. */
	void (*thread_left)(struct thread *thread);
	void (*left)(void);
	void (*switched)(void);        /* signal-safe: control.closed changed */
	void (*thread_switched)(void); /* the thread itself: its `excluded` changed */
	/* Background thread, every round; `last`: at the end, or when everything is to be written.
	 */
	void (*round)(struct runtime *runtime, bool last);
	bool (*keeps)(void); /* signal-safe: is there anything that only `round` writes? */
};

struct runtime {
	const struct runtime_hooks *hooks; /* may be NULL */
	_Atomic uint32_t state;
	uint32_t pid;
	/* A page that the kernel zeroes in every child that copies memory (MADV_WIPEONFORK): tells
	 * a raw fork, after which nothing here is to be trusted, without a system call. */
	const volatile uint32_t *same_process;
	struct options options;
	struct spool_writer spool;
	struct threads threads;
	struct modules modules;
	struct program_signals signals;
	struct sampling sampling;
	struct control control;
	_Atomic uint32_t
		sealed;     /* a thread entered a seccomp filter: unknown threads are left alone */
	struct track track; /* process-level records */
	struct background background;
	struct allocators allocators;
	struct wall_sampler wall_sampler;
	/* Writes what changed of allocations, every round and at the end (`last`); NULL: they are
	 * not wrapped. Background thread. */
	void (*_Atomic follow_allocations)(struct runtime *runtime, bool last);
	_Atomic uint32_t walkers; /* threads not yet known here that walk their stacks: pin the view
				   */
	char *const *environment;
	bool prepared; /* what is made once in the life of a process is there */
	bool attached; /* by runtime_attach(): it ends when whoever attached lets go */
	/* The library was not preloaded, so not all that the program executes and does with signals
	 * is seen. */
	bool opened;
};

extern struct runtime kymo_runtime;
extern __thread struct thread *kymo_thread;

/* Is this the process that the runtime was started in, and is it collecting? */
static inline bool runtime_active(void)
{
	return atomic_load_explicit(&kymo_runtime.state, memory_order_relaxed) == RUNTIME_ACTIVE &&
	       *kymo_runtime.same_process;
}

void runtime_start(char *const *environment);
void runtime_finish(void);
/* After fork, in the child. */
void runtime_restart_in_child(void);
/* What starts in different ways have in common: makes what is made once; forgets the last run, but
 * not the threads. */
bool runtime_prepare(struct runtime *runtime);
void runtime_set_up(struct runtime *runtime); /* as the options say */
void runtime_forget_run(struct runtime *runtime);
struct unwind_bounds runtime_main_stack(void);

/* The calling thread is about to exec or to enter a sandbox: its sources are stopped and no signal
 * of ours is pending or will come. Returns NULL where there is nothing to stop (unknown threads,
 * vfork children). */
struct thread *runtime_thread_leave(void);
/* The image goes and no destructor runs: what only a round of the background thread would write is
 * written. True: there was something. Signal-safe. */
bool runtime_write_kept(void);
/* exec failed: everything as before. */
void runtime_thread_stay(struct thread *thread);
/* Ends all collection for good: what comes next would not survive our system calls. */
void runtime_stop(const char *why);
/* Ends kymo's threads around a call that the kernel only allows in single-threaded processes, and
 * starts anew. */
bool runtime_suspend(const char *why);
void runtime_resume(void);

/* The block of the calling thread; NULL for threads that are unknown or not to be touched (vfork
 * children). */
struct thread *runtime_this_thread(void);
/* The same, and kymo_thread is set: for threads that were found running. Not for handlers. */
struct thread *runtime_adopt_this_thread(void);
/* For the thread itself: begin and end of its registered life. Our signal must not arrive during
 * end. */
void runtime_thread_begin(struct thread *thread);
void runtime_thread_end(struct thread *thread);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The thread registry: one block of state a thread, found by tid or through a thread-local pointer.
 *
 * Life of a block: threads_allocate_block() (in pthread_create's caller, or the background thread
 * that found the thread) → NEW; threads_hand_block_to_background() puts it on the list that the
 * background thread works off: it arms the sampling source and writes the THREAD_START record →
 * LIVE; at the end the thread (or the background thread, when the thread vanished) marks it ENDED
 * and announces it again: THREAD_END record, source closed, block recycled. Blocks never move and
 * their memory is never unmapped, so a late signal finds valid memory whatever happens. There is no
 * maximum.
 *
 * Ids: `internal` counts every thread; `sequent` counts application threads in creation order,
 * threads of kymo or of a runtime it hosts start at THREADS_SEQUENT_ID_INTERNAL_FIRST.
 */
#ifndef KYMO_CORE_THREADS_H
#define KYMO_CORE_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/thread_pointer.h"
#include "core/process/state.h"
#include "core/process/switch_rate.h"
#include "core/spool/writer.h"
#include "core/unwind/unwind.h"

#define THREADS_SEQUENT_ID_INTERNAL_FIRST (1u << 30)
#define THREADS_NO_PARENT                 UINT32_MAX
#define THREAD_NAME_SIZE                  16 /* TASK_COMM_LEN: prctl(2), PR_SET_NAME */
#define THREAD_COUNTERS_MAX               8

enum thread_life_stage_kind {
	THREAD_STATE_FREE,
	THREAD_STATE_NEW,
	THREAD_STATE_FOUND, /* by the background thread; the thread itself may take it over */
	THREAD_STATE_LIVE,  /* the thread's own */
	THREAD_STATE_ENDED
};
enum thread_announcement_kind { THREAD_NOT_ANNOUNCED, THREAD_ANNOUNCED_NEW, THREAD_ANNOUNCED_END };
enum thread_origin {
	THREAD_ORIGIN_MAIN,
	THREAD_ORIGIN_CREATED,
	THREAD_ORIGIN_FOUND,
	THREAD_ORIGIN_INTERNAL
};
/* Why a thread is not sampled; set by the thread itself. */
enum thread_excluded_reason { THREAD_EXCLUDED_BY_STOP = 1, THREAD_EXCLUDED_BY_SELECTION = 2 };

struct sampler;
struct sampling_source;

/* Written by the thread itself (in its handler, or with our signal blocked), except where noted. */
struct thread {
	/* Stay readable by anybody while the block is free; `index` comes after them. */
	_Atomic uint32_t state;
	_Atomic uint32_t next; /* block index + 1 in the announce or free list */
	_Atomic uint32_t announcement_kind;
	struct sampler *sampler; /* what the handler works with */
	uint32_t index, tid, internal_id, sequential_id, parent;
	enum thread_origin origin;
	_Atomic uint32_t is_walked_outside_handler; /* its stack is walked outside of the handler:
						       pins the view */
	_Atomic uint32_t
		is_in_signal_handler;   /* guards against re-entry; also pins the unwind view */
	bool wants_signal_blocked;      /* the program believes that our signal is blocked */
	bool is_program_signal_pending; /* a signal of our number came for the program while it had
					 * it blocked
					 */
	_Atomic uint32_t exec_pending;  /* about to exec, or in a sandbox: its sources are off */
	_Atomic uint32_t arming; /* the background thread opens its sources, or sends it a signal */
	_Atomic uint32_t excluded_reasons; /* not 0: no samples of this thread;
					      thread_excluded_reason bits */
	bool has_own_seccomp_filter; /* in a filter of its own: no system call of ours in it */
	bool dispatches_own_calls;   /* that is no filter, and children are without it */
	uint64_t start_ticks, end_ticks, entry;
	char name[THREAD_NAME_SIZE];     /* as last recorded */
	char end_name[THREAD_NAME_SIZE]; /* as the thread had it at its end */
	struct unwind_stack_bounds stack_bounds;
	uint64_t seen_stack_pointer; /* where a sample was taken while the bounds are not known */
	bool was_stack_looked_up;    /* by the background thread, with or without success */
	uint64_t pthread; /* its pthread_t, once the thread itself has told; 0: not yet */
	void *(*start_routine)(void *);
	void *start_argument;

	/* sampling stream */
	struct spool_chunk *chunk;
	uint32_t used;
	bool wants_large_chunks;
	uint64_t chunk_ticks; /* when the chunk was taken */
	uint64_t last_sample_time, last_sample_weight, covered_ns, cpu_ns, sample_count,
		signal_count;
	bool is_in_mask_setting_call; /* in a call that sets its mask and never blocks our signal */
	bool takes_first_sample;      /* in the handler that began the collection, which does not
					 block the signal of the source that was chosen then */
	bool carries_lost_sample_time; /* the next sample stands for time of one that could not be
					  written */
	/* Time that it waited for a CPU after it was pre-empted; its next CPU sample takes it (by
	 * the real-time sampler) */
	_Atomic uint64_t queued_ns;
	uint64_t last_metrics_ticks;
	uint64_t metrics[SPOOL_METRIC_COUNT];
	uint32_t previous_frame_count;
	enum spool_stack_end previous_stack_end;
	enum spool_interpreter_state previous_interpreter_state;
	uint64_t *previous_frames, *current_frames; /* max_depth each, swapped after every sample */
	/* For stacks with interpreted frames: max_depth of the native ones and their stack
	 * pointers, twice that of the others; and the interpreter's state of this thread, once it
	 * is known. */
	uint64_t *native_frames, *stack_pointers, *interpreted_items, interpreter_thread;
	uint64_t handler_ticks, throttle_span_start_ticks, throttle_span_handler_ticks;
	struct switch_rate switch_rate;
	/* What it found out of its changes of context, until the background thread acts on it. */
	_Atomic uint32_t switch_rate_verdict; /* enum switch_rate_verdict */

	/* background thread only */
	const struct sampling_source *source; /* NULL: none */
	int perf_event_fd, overflow_event_fd;
	/* The last ones that were closed, of which a signal may still be pending; -1: none. */
	int closed_perf_event_fd, closed_overflow_event_fd;
	bool armed, overflow_armed, started;
	bool has_told_costly_switches; /* that another source samples it, or what its events cost */
	bool counts_cpu_before_arming; /* its CPU time counts from before it is armed first */
	uint64_t period, random;
	/* At the last change of the period: samples, what the event had counted, the period. */
	uint64_t sample_count_at_period_change, event_count_at_period_change, period_since_change;
	uint64_t end_cpu_ns;
	int counter_fd[THREAD_COUNTERS_MAX];
	void *counter_page[THREAD_COUNTERS_MAX]; /* read by the thread's handler */
	_Atomic uint64_t
		counter_value[THREAD_COUNTERS_MAX]; /* as last read; for the handler as well */
	uint64_t sample_count_at_counter_read;      /* when that was */
	uint64_t cpu_ns_at_arming,
		collected_cpu_ns; /* CPU time at the last arming; while armed, before that */
	/* CPU time when the thread excluded itself, and all of it that passed so (by the thread) */
	uint64_t cpu_ns_at_exclusion, total_excluded_cpu_ns;
	/* Its CPU time is this and what its event counted (program.h). */
	uint64_t event_count_base_cpu_ns;
	bool is_cpu_time_from_event;
	_Atomic uint64_t
		latest_reported_cpu_ns; /* the latest that was told; by any thread of the helper */
	uint64_t seen;                  /* scan that last saw it */
	/* Its CPU timer: what the helper wants of it, and when it looks whether the thread runs. */
	_Atomic uint32_t timer_request; /* enum timer_request */
	_Atomic uint64_t timer_requested_period_ns;
	uint64_t timer_look_interval_ns, timer_next_look_ns, cpu_ns_at_timer_look;
	int timer;                                /* by the thread itself */
	_Atomic uint64_t timer_running_period_ns; /* the period it runs with, 0: it does not; by the
						     thread */
	/* Armed while it ran: what its CPU time was then is known only to the tick. Not 0: when;
	 * the first sample after it takes what cannot have passed since. */
	_Atomic uint64_t armed_at_ticks;
	struct thread *live_next, *live_previous;

	void *regions;      /* of the room of regions */
	void *causal_state; /* of the room of causal profiling */
	struct unwind_scratch scratch;
};

/* The calling thread's block; not set in threads that are unknown. */
extern __thread struct thread *kymo_thread;

static inline bool thread_has_on_stack(const struct thread *thread, uint64_t address)
{
	return address >= thread->stack_bounds.low && address < thread->stack_bounds.high;
}

/* The least that a signal's frame takes of a stack: siginfo_t, ucontext_t and the state of the
 * vector registers (struct rt_sigframe, arch/x86/include/asm/sigframe.h). */
#define THREAD_SIGNAL_FRAME_BYTES_LEAST 1024u

/* Can what stands at `later` on the thread's own stack not be of a handler that interrupted what
 * stood at `earlier`? Then that was left, by siglongjmp. Handlers on alternate stacks may be
 * anywhere, and are not thought of. */
static inline bool thread_no_handler_is_between(const struct thread *thread, uint64_t earlier,
						uint64_t later)
{
	return thread_has_on_stack(thread, earlier) && thread_has_on_stack(thread, later) &&
	       earlier < later + THREAD_SIGNAL_FRAME_BYTES_LEAST;
}

/* Is the calling thread to be left alone? In a seccomp filter of its own it may make no system call
 * of ours, and with a foreign thread pointer it has no thread-local variables. */
static inline bool is_calling_thread_off_limits(void)
{
	return !thread_pointer_is_usable() ||
	       (process_has_seccomp_thread() &&
		(!kymo_thread || kymo_thread->has_own_seccomp_filter));
}

/* The same of a thread that is known, or is kymo's. */
static inline bool is_calling_thread_in_own_filter(void)
{
	return process_has_seccomp_thread() && thread_pointer_is_usable() && kymo_thread &&
	       kymo_thread->has_own_seccomp_filter;
}

struct threads {
	struct sampler *sampler;                    /* of all threads */
	_Atomic uint64_t free_list, announced_list; /* tagged indexes */
	_Atomic uint32_t block_count, next_internal_id, next_sequential_id,
		next_own_thread_sequential_id;
	_Atomic uint32_t live_count, registered_count;
	_Atomic uint32_t not_yet_running_count; /* being created; they have not run yet */
	_Atomic uint32_t grow_lock;
	_Atomic(struct thread *) *slabs; /* THREADS_SLAB blocks each */
	_Atomic uint32_t
		*block_index_by_tid; /* block index + 1; direct by tid, reserved address space */
	uint32_t max_depth, stack_depth_capacity;
	uint32_t block_size;
	bool select; /* SELECTED_REGIONS: threads begin outside of them */
};

int threads_init(struct threads *threads, uint32_t max_depth);
/* The depth of stacks from here on, at most what threads_init() was told. */
void threads_set_max_stack_depth(struct threads *threads, uint32_t max_depth);
/* In a forked child: forgets all threads; memory is reused. */
void threads_reset_in_child(struct threads *threads);
/* Forgets all threads, but blocks stay where they are: some threads still point to them. */
void threads_forget_all_keep_blocks(struct threads *threads);
/* What was announced is not to be worked off any more. */
void threads_discard_announcements(struct threads *threads);

/* A block with fresh ids, or NULL when memory is short. Not for handlers. */
struct thread *threads_allocate_block(struct threads *threads, enum thread_origin origin,
				      uint32_t parent);
/* A thread is about to be created with such a block; it runs, or will not. Between the two nobody
 * else is to take it for a thread that was found. */
void threads_note_creation_begin(struct threads *threads);
void threads_note_creation_end(struct threads *threads);
/* Gives back a block that no thread came of. */
void threads_free_block(struct threads *threads, struct thread *thread);
/* By the thread itself: makes its block findable by its tid. Where the background thread has found
 * it before, that block becomes its own and is returned. So is the one that a signal handler bound,
 * which has interrupted this or what led here: its events are known by that block. Any other block
 * with this tid is of an earlier thread, which may have ended without a word; so is one that was
 * found before thread->start_ticks, which is then when the thread was about to be created (0: not
 * known). */
struct thread *threads_bind_own_tid(struct threads *threads, struct thread *thread, uint32_t tid);
/* By the background thread, for a thread that it has found: false where the thread has a block. */
bool threads_bind_found_tid(struct threads *threads, struct thread *thread, uint32_t tid);
/* By the background thread: the block of a thread that has ended is nobody's from here on. False:
 * a thread, which may have the same tid, has taken it over meanwhile. */
bool threads_end_found_block(struct thread *thread);

static inline bool thread_state_is_live(uint32_t state)
{
	return state == THREAD_STATE_FOUND || state == THREAD_STATE_LIVE;
}

/* Hands the block to the background thread: a new thread, or one that has ended and whose block is
 * not touched by it any more. A block that is on the list already is not put there twice.
 * Signal-safe. */
void threads_hand_block_to_background(struct threads *threads, struct thread *thread,
				      enum thread_announcement_kind what);
/* Takes all announced blocks, oldest first; NULL when there are none. */
struct thread *threads_take_announced(struct threads *threads);
/* The block after this one in what was taken; *ret_what says why this one was on the list. After
 * the call the block may be announced again at any time. */
struct thread *threads_get_next_announced(struct threads *threads, struct thread *thread,
					  enum thread_announcement_kind *ret_what);
/* Background thread: block back on the free list. */
void threads_unbind_and_free_one_block(struct threads *threads, struct thread *thread);
/* Signal-safe; NULL when unknown. */
struct thread *threads_find_by_tid(struct threads *threads, uint32_t tid);
struct thread *threads_get_block_at_index(struct threads *threads, uint32_t index);

#endif

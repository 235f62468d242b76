/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * kymo's own thread beside the profiled program: allocator of chunks, writer of the process track,
 * owner of the event sources, observer of modules, threads and metrics.
 *
 * An own_thread. It never calls the dynamic loader, allocates with mmap only, and waits on a futex
 * with a timeout.
 */
#ifndef KYMO_CORE_BACKGROUND_H
#define KYMO_CORE_BACKGROUND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/own_thread.h"
#include "core/threads.h"

struct runtime;

#define ENDING_THREADS 256 /* a power of two */

/* One that has announced its end, and that the kernel lists until it has gone, which on a busy
 * machine can take a while. */
struct ending_thread {
	uint32_t tid;
	uint64_t scan; /* that last saw it, or before which it ended */
	uint64_t cpu_ns;
};

struct background_state {
	_Atomic uint32_t wake;               /* futex word: 1 when there is something to do */
	_Atomic uint32_t sleeping;           /* nobody needs to wake a thread that is awake */
	_Atomic uint32_t flushes_done_count; /* futex word: flushes done */
	_Atomic uint32_t flush_request_count;
	_Atomic uint32_t module_requests_done_count; /* futex word: modules were looked at since */
	_Atomic uint32_t module_request_count;
	_Atomic uint32_t finish; /* enum background_finish_request_kind */
	_Atomic uint32_t
		is_spool_file_open; /* the spool file is open, and its header is filled in */
	bool write_now;             /* somebody outside waits for it */
	_Atomic uint32_t
		has_program_ended; /* without a word: what only this thread writes is written */
	_Atomic uint32_t are_final_records_written; /* futex word: and it is */
	_Atomic uint32_t
		is_exec_pending; /* a thread of the program is about to execute another image */
	_Atomic uint32_t ready;  /* futex word: descriptors closed 1, collecting 2, failed 3 */
	_Atomic uint64_t too_costly_period; /* period that a handler found too costly */
	_Atomic uint32_t stop;              /* 1: disarm everything and end for good */
	bool is_detach_wanted;              /* leave the process (attach.h) */
	bool is_attacher_gone;              /* because nobody holds it any more */
	uint64_t next_attacher_check_ns;
	const char *stop_reason;
	struct own_thread thread;
	struct thread *own;                          /* its registry entry */
	struct thread *live;                         /* all live threads, linked */
	struct ending_thread ending[ENDING_THREADS]; /* by the last bits of the tid */
	uint32_t live_thread_count;
	uint32_t program_thread_count;          /* of them, the program's own */
	uint32_t told_unopenable_counters_mask; /* bit per counter that could not be opened */
	uint32_t costly_switch_notice_count;    /* notices of threads that change context often */
	uint64_t next_name_check_ns;
	uint32_t name_check_shift; /* names are looked at ever less often */
	bool is_debugger_attached; /* a debugger came: sampling by SIGTRAP rests */
	bool is_writing_process_metrics, has_told_timer_fallback, has_told_overflow_failure;
	uint64_t scan, next_thread_scan_ns, next_process_metrics_ns, next_clock_record_ns,
		next_period_jitter_ns, next_totals_update_ns, next_spool_write_ns,
		next_switch_rate_check_ns, process_metrics_end_ns;
	uint64_t thread_scan_cost_ns;
	uint32_t cpus;
	uint64_t ended_threads_signal_count, ended_threads_handler_ticks, ended_threads_covered_ns,
		ended_threads_sample_count, ended_threads_switch_cost_ns; /* of ended threads */
};

/* The last records are to be written. Threads that run on are profiled until the process ends;
 * where there are none, the helper ends with it. */
enum background_finish_request_kind {
	BACKGROUND_FINISH_NOT_REQUESTED,
	BACKGROUND_FINISH_AND_GO_ON,
	BACKGROUND_FINISH_AND_END_HELPER
};

/* Stages of `ready`. */
enum {
	BACKGROUND_STAGE_RUNNING = 1, /* has let go of the program's descriptors */
	BACKGROUND_STAGE_RECORDING,   /* regions can be written */
	BACKGROUND_STAGE_COLLECTING,
	BACKGROUND_STAGE_FAILED,
	BACKGROUND_STAGE_FINISHED, /* last records written */
	BACKGROUND_STAGE_STOPPED   /* gone */
};

/* Starts the thread. 0 or negative errno. */
int background_start(struct runtime *runtime);
/* Waits until `ready` is at least `stage` or the time is over. */
bool background_wait_for_stage(struct background_state *background, uint32_t stage,
			       uint64_t timeout_ns);
/* Signal-safe. */
void background_wake(struct background_state *background);
void background_request_sampling_throttle(struct background_state *background, uint64_t period);
/* Asks for everything announced so far to be written; waits at most timeout_ns. Not in handlers. */
void background_request_flush_and_wait(struct background_state *background, uint64_t timeout_ns);
/* Asks for what is mapped now to be known; waits at most timeout_ns. Not in handlers. */
void background_request_modules_and_wait(struct background_state *background, uint64_t timeout_ns);

#endif

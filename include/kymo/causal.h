/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Causal profiling: what kymo and the processes of a session share while it runs.
 *
 * One file, SESSION/causal/control, mapped shared by kymo (the controller) and by every profiled
 * process, so that an experiment covers the whole process tree: a delay that one process causes is
 * paid by the threads of all others. kymo chooses experiments and measures; processes sample,
 * delay and count visits. Times are ticks (core/ticks.h): TSC, or nanoseconds where it is no good.
 *
 * The terms are those of the paper (Curtsinger and Berger, "Coz", SOSP 2015) and of Coz's sources:
 *
 *   symbol | paper's name    | field
 *   G      | global delay    | causal_control.global_delay
 *   L      | local delay     | causal_thread.local_delay
 *   L - G  | excess delay    | causal_thread.excess_delay
 *          | unapplied delay | causal_attribution.unapplied_delay
 *   s      | speedup         | causal_control.experiment (bits 20-29)
 *
 * The global delay is the most that any thread has. A thread takes delay by running the target
 * (speedup * time is attributed to it by samples; what is not in its local delay yet is unapplied),
 * by pausing, or by waiting for a thread of the session that did, its waker. At a sync point (a
 * sample, a wakeup, a wait) a thread pauses for what it lacks, G - L; what the pause was longer
 * than that is excess and goes off the next one. A burst is a thread's run from one sync point to
 * the next. A thread's virtual time is real time minus L. Nothing of this is to be trusted by kymo
 * beyond its bounds: a process may write anything here.
 *
 * Beside it: SESSION/causal/socket, where processes ask for maps of their modules (struct
 * causal_request), and SESSION/causal/windows.ndjson (analysis/causal/causal.h). The directory is
 * the value of KYMO_CAUSAL in the environment.
 */
#ifndef KYMO_CAUSAL_H
#define KYMO_CAUSAL_H

#include <stdint.h>

#define CAUSAL_MAGIC   0x6c6173756163796bull /* "kycausal" */
#define CAUSAL_VERSION 4u

#define CAUSAL_POINTS    256u
#define CAUSAL_TARGETS   (1u << 20) /* ids 1 .. CAUSAL_TARGETS - 1 */
#define CAUSAL_RING      64u        /* visits a point remembers; power of two */
#define CAUSAL_MARKS     4096u
#define CAUSAL_RUNNERS   64u /* threads that earn at the same time */
#define CAUSAL_NAME_SIZE 216

/* ---- the experiment: one word, written by the controller alone ---- */

#define CAUSAL_TARGET_MASK   0xfffffull /* bits 0-19: target, 0: none (baseline) */
#define CAUSAL_SPEEDUP_SHIFT 20         /* bits 20-29: per mille of the target's time, 0-1000 */
#define CAUSAL_SPEEDUP_MASK  0x3ffull
#define CAUSAL_ACTIVE        (1ull << 30) /* debts are paid; else they are forgiven */
#define CAUSAL_EPOCH_SHIFT   32           /* counts activations */

/* ---- progress points ---- */

enum causal_point_kind {
	CAUSAL_POINT_PROGRESS,
	CAUSAL_POINT_BEGIN,
	CAUSAL_POINT_END,
	CAUSAL_POINT_SPIN /* none: a function that waits by looking again and again */
};
enum causal_origin {
	CAUSAL_ORIGIN_USER,     /* kymo/user.h */
	CAUSAL_ORIGIN_COZ,      /* coz.h: the program counts by itself, in `coz` */
	CAUSAL_ORIGIN_NAMED,    /* a function or line named on the command line */
	CAUSAL_ORIGIN_AUTOMATIC /* requests, OpenMP regions, MPI calls */
};
enum causal_point_state { CAUSAL_POINT_FREE, CAUSAL_POINT_CLAIMED, CAUSAL_POINT_READY };

/* The count-th visit of a point, and its virtual time: ticks - (local_delay - start_delay) of the
 * visiting thread in an epoch, plain ticks outside. Valid where count % CAUSAL_RING is its place
 * and `count` is the same before and after reading `time`. */
struct causal_visit {
	_Atomic uint64_t count, time;
};

struct causal_point {
	_Atomic uint32_t state; /* causal_point_state; name, kind, origin are constant when READY */
	uint32_t kind, origin;
	_Atomic uint32_t given_up; /* it is visited too often for what counts its visits */
	_Atomic uint64_t visits;
	_Atomic uint64_t time_sum; /* of virtual times of all visits, modulo 2^64 */
	uint64_t coz[2];           /* coz_counter_t: count, backoff (coz.h) */
	char name[CAUSAL_NAME_SIZE];
	struct causal_visit ring[CAUSAL_RING];
};

/* CPU time seen in a target, by samples, ever: with a frame of it as the innermost one in scope,
 * and with one anywhere on the stack. The second is what an experiment speeds up. */
struct causal_target_time {
	_Atomic uint64_t self_ns, total_ns;
};

/* A thread that earns as it runs: its local_delay was `delay` at `ticks`, and grows from there, at
 * rates that change with the time since it began what it does: the first one for `step` ticks, the
 * second one for as many again, each further one for twice as long as the one before, the last one
 * for the rest. That it has come to a step says something of the ones before: by so much
 * local_delay jumps then, up or down. global_delay is as far as the furthest of them, or `delay` of
 * the control file where that is more.
 */
#define CAUSAL_STEPS 6u
struct causal_runner {
	_Atomic uint64_t sequence; /* odd: being written */
	_Atomic uint64_t owner;    /* 0: free */
	_Atomic uint64_t delay, ticks;
	_Atomic uint64_t begin; /* 0: it waits */
	_Atomic uint64_t step;
	_Atomic uint64_t until;               /* ticks: grows no further, whatever became of it */
	_Atomic uint64_t rates[CAUSAL_STEPS]; /* in 2^32ths of ticks a tick */
	_Atomic int64_t jumps[CAUSAL_STEPS];  /* ticks, where the step begins */
	uint64_t unused[5];
};

struct causal_control {
	uint64_t magic;
	uint32_t version, size_of_header;
	uint64_t ticks_per_second;   /* by the controller's measure */
	uint64_t ticks_are_ns;       /* processes that see this differently take no part */
	_Atomic uint64_t experiment; /* see above */
	_Atomic uint64_t
		start_delay; /* global_delay when the epoch began; written before `experiment` */
	/* Ticks after which nothing is paid any more: renewed by the controller as long as it
	 * lives, so that a program never hangs on a controller that died. */
	_Atomic uint64_t expires;
	_Atomic uint64_t resting; /* no experiment for a while: samples may be rare */
	uint64_t unused0[8];
	_Atomic uint64_t global_delay; /* only grows; a cache line of its own */
	uint64_t unused1[7];
	_Atomic uint64_t runners_used; /* bits */
	uint64_t unused3[7];
	/* Threads that run, could, or pause, and all that ever did in this experiment and are there
	 * still: of even and of odd epochs. The next one's are 0 when it begins. */
	_Atomic int64_t could_run[2], took_part[2];
	uint64_t unused4[4];
	struct causal_runner runners[CAUSAL_RUNNERS];
	/* What happened, for reports and for tests. Ticks where nothing else is said. */
	_Atomic uint64_t samples, samples_in_scope, samples_in_target; /* counts */
	_Atomic uint64_t earned;                                       /* by running the target */
	_Atomic uint64_t paid;      /* by pausing: really slept */
	_Atomic uint64_t overslept; /* of it more than was owed; kept as credit */
	_Atomic uint64_t credited;  /* absorbed by waiting for a thread of the session */
	_Atomic uint64_t forgiven;  /* owed when an epoch ended */
	_Atomic uint64_t pauses, waits, waits_outside; /* counts; outside: ended by nobody of us */
	_Atomic uint64_t visits_lost;                  /* no room for a point: counts */
	_Atomic uint32_t processes;                    /* that have this file mapped */
	_Atomic uint32_t maps_pending; /* modules that are asked for and not answered */
	_Atomic uint32_t maps;         /* that are in use */
	_Atomic uint32_t points_lost;
	/* Sleeps of pauses ended later than timers do: the thread waited for a processor, which
	 * makes the program no slower, as `overslept` goes off the next pause. */
	_Atomic uint64_t late;
	uint64_t unused2[49];
	/* When a thread of the session last did something that wakes whoever waits for a thing (a
	 * pipe, a socket, an eventfd): ticks, at the hash of the thing. */
	_Atomic uint64_t marks[CAUSAL_MARKS];
	struct causal_point points[CAUSAL_POINTS];
	struct causal_target_time
		targets[CAUSAL_TARGETS]; /* a sparse file: pages as they are used */
};

/* ---- maps: which targets an address belongs to ---- */

/* A file: header, then arrays of uint32_t: `count` starts, `count` lists, `id_count` ids. Range i
 * is starts[i] up to starts[i + 1] (the last one up to `end`), in offsets of the module's file
 * minus `base`, so that a process needs nothing but its mappings to use it; its targets are
 * ids[lists[i]] up to the next 0: innermost inlined function or line first, none twice. ids[0] is
 * 0: the empty list; so is the last id. Ids are the session's, the same in all maps. */
struct causal_map_header {
	uint64_t magic; /* CAUSAL_MAP_MAGIC */
	uint32_t version, count, id_count;
	uint32_t unused;
	uint64_t base, end;
};
#define CAUSAL_MAP_MAGIC   0x70616d6c61737561ull
#define CAUSAL_MAP_VERSION 1u

enum causal_request_kind {
	/* Of a module (path, build_id, as in struct plan_request): its map, and the addresses in it
	 * at which visits are to be counted. */
	CAUSAL_REQUEST_MAP = 1
};

/* SOCK_SEQPACKET, one message each way at a time. */
struct causal_request {
	uint32_t kind, pid;
	uint64_t device, inode; /* of the mapped file, as /proc/self/maps has them */
	uint32_t build_id_size;
	uint32_t is_program; /* the process's executable: %MAIN% */
	uint8_t build_id[32];
	char path[4096];
};

#define CAUSAL_ANSWER_POINTS 16u

struct causal_answer {
	int32_t status; /* 0; -ENOENT: nothing in scope; other negative errno */
	uint32_t point_count;
	char map[4096]; /* path of the map */
	struct {
		uint64_t address;      /* offset in the module's file */
		uint32_t kind;         /* causal_point_kind */
		uint32_t instrumented; /* a function whose calls the instrumenter tells of */
		char name[CAUSAL_NAME_SIZE];
	} points[CAUSAL_ANSWER_POINTS];
};

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The spool: the one file format between the profiled process and everything outside it.
 *
 * One file a process image (`<session>/spool/<pid>-<n>.spool`), mapped MAP_SHARED by the profiled
 * process, so that what was written is there after SIGKILL. A file is a header page followed by
 * chunks at multiples of SPOOL_ALIGNMENT. A chunk has one writer at a time. All integers are little
 * endian.
 *
 *   file   := spool_file_header (4096 bytes) chunk*
 *   chunk  := spool_chunk_header (64 bytes) record* (up to `committed` bytes after the header)
 *   record := kind (1 byte) length (LEB128: bytes of payload) payload
 *
 * Readers skip records of unknown kind by their length and stop at `committed`; a record that runs
 * past `committed` is torn. Integers inside payloads are LEB128 (`u`), zigzag LEB128 (`s`), 8 bytes
 * (`x`) or length-prefixed bytes (`b` := u length, bytes). The full description with examples is
 * docs/reference/spool-format.md.
 *
 * Processes that have used little CPU time have no file of their own. They append entries to one
 * that all of the session share, `<session>/short-processes` (since 1.5):
 *
 *   shared := SPOOL_SHORT_MAGIC entry*
 *   entry  := spool_file_header, its first SPOOL_SHORT_HEADER bytes; spool_chunk_header; record*
 */
#ifndef KYMO_SPOOL_H
#define KYMO_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#define SPOOL_MAGIC             "KYMOSPL" /* 7 characters and the terminating zero */
#define SPOOL_VERSION_MAJOR     1         /* readers refuse another major version */
#define SPOOL_VERSION_MINOR     10        /* additions that old readers can skip */
#define SPOOL_ALIGNMENT         4096u /* file header size; chunks start and end at multiples of it */
#define SPOOL_CHUNK_MAGIC       0x4b4e4843u /* "CHNK" */
#define SPOOL_CHUNK_HEADER_SIZE 64u
#define SPOOL_CHUNK_SIZE_MAX    (16u << 20)

/* Why data is missing. The counters live in the file header, so that they survive SIGKILL; names
 * for reports are in spool_loss_name(). Append only. */
enum spool_loss {
	SPOOL_LOSS_NO_CHUNK,     /* sample dropped: no chunk was ready (allocator behind) */
	SPOOL_LOSS_DISK_FULL,    /* record dropped: the file could not grow (ENOSPC, EDQUOT,
				    RLIMIT_FSIZE, EIO) */
	SPOOL_LOSS_MEMORY_LIMIT, /* record dropped: spool size limit reached */
	SPOOL_LOSS_REENTRY, /* sample dropped: signal arrived while the thread was inside kymo */
	SPOOL_LOSS_NO_THREAD_BLOCK, /* sample dropped: no thread state could be had */
	SPOOL_LOSS_UNARMED_THREAD,  /* thread that no timer or event could be armed for (limits) */
	SPOOL_LOSS_MODULE_TABLE,    /* module whose unwind table could not be built */
	SPOOL_LOSS_STALE_MODULES,   /* sample unwound while modules were changing (kept, stack less
				       certain) */
	SPOOL_LOSS_OVERSIZED,       /* record larger than a chunk */
	SPOOL_LOSS_SIGNAL_BLOCKED,  /* the program blocks the sampling signal where kymo cannot
				       prevent it */
	SPOOL_LOSS_SECCOMP,         /* thread left alone: seccomp filter, or system call dispatch */
	SPOOL_LOSS_THROTTLED,      /* times the rate was lowered to stay under the overhead limit */
	SPOOL_LOSS_RING_OVERWRITE, /* chunk reused by ring mode before it was read */
	SPOOL_LOSS_REGION_REENTRY, /* region event dropped: it came from a signal handler while the
				      thread was writing one */
	SPOOL_LOSS_REGION_DEPTH,   /* region deeper than MAX_DEPTH: left out with its children */
	SPOOL_LOSS_REGION_NAMES,   /* region left out: no room for its name */
	SPOOL_LOSS_REGION_EVENTS,  /* region event left out of the trace: no chunk was ready */
	SPOOL_LOSS_PROFILE_NODES,  /* region counted in its parent's "(more)": no room for a node */
	SPOOL_LOSS_REGION_THROTTLED,  /* calls of regions left out because they are short and many
					 (THROTTLE_COUNT, THROTTLE_VALUE) */
	SPOOL_LOSS_REGION_UNBALANCED, /* regions ended by the end of an outer one, or never begun */
	SPOOL_LOSS_WRAPPER,           /* function that could not be wrapped */
	SPOOL_LOSS_CALL_EVENTS,  /* entry or exit of an instrumented function: no chunk was ready */
	SPOOL_LOSS_CALL_DEPTH,   /* call of an instrumented function left out: too deep */
	SPOOL_LOSS_CALL_REENTRY, /* the same: made by a signal handler in the midst of another */
	SPOOL_LOSS_CALL_UNWOUND, /* calls that did not return (longjmp, exception, thread end):
				    ended when it was noticed */
	SPOOL_LOSS_INSTRUMENT,   /* module that could not be instrumented */
	SPOOL_LOSS_INTERPRETED_FRAMES, /* sample whose interpreted frames could not be read, or not
					  all (kept; since 1.8) */
	SPOOL_LOSS_INTERPRETED_CODE,   /* function of an interpreter that could not be described
					  (since 1.8) */
	SPOOL_LOSS_PERF_RING,          /* sample or record of a process sampled from outside: the
					  kernel's ring was full (since 1.8) */
	SPOOL_LOSS_INTERPRETERS, /* further interpreter of Python, whose calls are not recorded */
	SPOOL_LOSS_MPI_REQUESTS, /* request of MPI that was not followed: too many at once */
	SPOOL_LOSS_COUNT = 32    /* room in the header; unused ones are zero */
};

/* How the walk of one stack ended. 0 is a complete stack, everything else a truncated one. Append
 * only. */
enum spool_stack_end {
	SPOOL_STACK_COMPLETE,    /* reached the outermost frame */
	SPOOL_STACK_NO_TABLE,    /* pc in no known module and no heuristic applied */
	SPOOL_STACK_BAD_READ,    /* a needed word lay outside the readable stack */
	SPOOL_STACK_BAD_CFA,     /* the frame address did not grow */
	SPOOL_STACK_UNSUPPORTED, /* unwind rule that the table cannot express */
	SPOOL_STACK_DEPTH,       /* more frames than SAMPLING_MAX_DEPTH */
	SPOOL_STACK_BAD_PC,      /* return address outside all code */
	SPOOL_STACK_NOT_WALKED,  /* only the pc was asked for or could be had */
	SPOOL_STACK_END_COUNT    /* fits 4 bits */
};

/* Why a sample has no stack: the only frame of a NOT_WALKED stack, in the place of an address
 * (since 1.4). No code lies there. Append only. */
enum spool_no_stack {
	SPOOL_NO_STACK_BRIEF = 1, /* the thread was blocked for moments too short to be looked at */
	SPOOL_NO_STACK_ENDED,     /* the thread ended before it was looked at again */
	SPOOL_NO_STACK_UNSAMPLED, /* the thread waited for a CPU, and has no CPU sample near that */
	SPOOL_NO_STACK_KERNEL, /* the kernel was making or ending the process, which had no memory;
				  or its registers are not those of a 64-bit program (since 1.8) */
	SPOOL_NO_STACK_LIMIT = 4096
};

enum spool_sample_source {
	SPOOL_SOURCE_CPU, /* CPU time (perf task-clock or POSIX CPU timer); weight: ns of thread CPU
			     time */
	SPOOL_SOURCE_WALL,     /* real time, thread blocked or waiting; weight: ns of real time */
	SPOOL_SOURCE_OVERFLOW, /* perf event overflow; weight: events */
	SPOOL_SOURCE_RUNNABLE, /* real time, thread waits for a CPU; weight: ns of real time */
	SPOOL_SOURCE_COUNT
};

/* clang-format off */
/* Record kinds. Layouts: `u s x b` as above. Append only; 0 is never used. */
enum spool_record {
	/* Starts a span: all sample records up to the next span or the chunk's end belong to this thread. Resets the
	 * decoder: previous stack empty, time base = ticks.
	 *   u internal id, u tid, x ticks */
	SPOOL_RECORD_SPAN = 1,
	/* One sample, in a span.
	 *   flags byte: bits 0-1 spool_sample_source, bit 2 metrics follow, bit 3 taken with stale modules,
	 *               bits 4-6 spool_stack_end
	 *   u dt: (ticks >> SPOOL_SAMPLE_TIME_SHIFT) minus that of the previous sample of the span (or the base)
	 *   s weight minus the weight of the previous sample of the span (0 at its start)
	 *   u common: frames shared with the previous stack of the span, counted from the outermost
	 *   u fresh: frames that follow, outermost first
	 *   s[fresh] pc deltas: the first against the previous stack's frame at the same place when there was one,
	 *            else against the frame before it (the caller), else against 0; each later one against its caller
	 *   [u event: with source OVERFLOW, index of the event in SAMPLING_OVERFLOW_EVENT]
	 *   [metrics: u bitmap of spool_metric, then u value - previous value of that metric in the span, per set bit]
	 *   [u spool_interpreter_state, where it is not NONE (since 1.8)]
	 * A CPU sample without frames (common and fresh 0, complete) is none: its weight is CPU time during which the
	 * program had kymo's signal blocked, so that no sample stands for it (since 1.4).
	 * The innermost frame is an exact pc. All others are looked up one byte before their value: they are return
	 * addresses, and where a signal interrupted a frame its exact pc is stored plus one. A value of
	 * SPOOL_INTERPRETED_FRAME_BIT and up is no address, but a frame of interpreted code (since 1.8). */
	SPOOL_RECORD_SAMPLE = 2,
	/* The thread of this span is still blocked where its last WALL sample was. u dt, u weight
	   (absolute) */
	SPOOL_RECORD_SAMPLE_REPEAT = 3,

	/* Process-track records; they may stand in any chunk. */
	/* One simultaneous reading. x ticks, x monotonic ns, x boottime ns, x realtime ns */
	SPOOL_RECORD_CLOCK = 16,
	/* u pid, u ppid, u uid, u gid, b executable path, b arguments (zero-separated), b working
	 * directory, b host name, b inherited session environment (zero-separated NAME=value of
	 * KYMO_*) */
	SPOOL_RECORD_PROCESS = 17,
	/* x ticks, u module id, u start, u end (addresses of the executable mapping), u file offset
	 * of start, u device, u inode, b build-id, b path. Address to file offset: pc - start +
	 * offset. */
	SPOOL_RECORD_MODULE = 18,
	/* x ticks, u module id */
	SPOOL_RECORD_MODULE_GONE = 19,
	/* x ticks, u internal id, u sequent id, u tid, u parent internal id + 1 (0: unknown), u
	 * entry pc (0: unknown), b name, u how (0 main, 1 pthread_create, 2 found running, 3 kymo's
	 * own) */
	SPOOL_RECORD_THREAD_START = 20,
	/* u internal id, b name */
	SPOOL_RECORD_THREAD_NAME = 21,
	/* x ticks, u internal id, u thread CPU ns, u CPU ns covered by sample weights, u samples, u
	   signals */
	SPOOL_RECORD_THREAD_END = 22,
	/* x ticks, u count, then (u spool_process_metric, u value) each */
	SPOOL_RECORD_PROCESS_METRICS = 23,
	/* x ticks, u spool_notice, u argument, b text. Things a reader should tell: source chosen,
	 * fall-back, throttle, window opened or closed. */
	SPOOL_RECORD_NOTICE = 24,
	/* An interned string. u id, b text */
	SPOOL_RECORD_STRING = 25,

	/* ---- regions (since 1.1) ----
	 * A region is named once per process: u region id (from 1), u spool_region_kind, b category, then
	 * NAMED: b name; FUNCTION: x code address, [u id of an instrumented function]. May stand in any chunk, also
	 * after its first use. */
	SPOOL_RECORD_REGION = 32,
	/* Starts a span of region records of one thread; they stand in chunks of their own, apart from samples.
	 *   u internal id, u tid, x ticks, u open regions, then per open region, outermost first: u region id,
	 *   u ticks since its begin. A reader can start at any span. Of deep stacks only the innermost are listed: a
	 *   first entry of region 0 has in the place of ticks how many are left out. */
	SPOOL_RECORD_REGION_SPAN = 33,
	/* u dt (ticks since the previous region record of the span or its base), u region id */
	SPOOL_RECORD_REGION_BEGIN = 34,
	/* Ends the innermost open region. u dt */
	SPOOL_RECORD_REGION_END = 35,
	/* Ends a region that is not the innermost. u dt, u region id, u how (spool_region_end) */
	SPOOL_RECORD_REGION_END_OTHER = 36,
	/* Belongs to the begin, end or mark before it. u spool_value_type, b name, value: x (SIGNED, UNSIGNED,
	 * ADDRESS, REAL as bits) or b (TEXT). An ADDRESS may be a frame of interpreted code (since 1.8) */
	SPOOL_RECORD_ANNOTATION = 37,
	/* An instant. u dt, u region id */
	SPOOL_RECORD_MARK = 38,
	/* A value over time. u dt, u region id (names the counter), x bits of a double */
	SPOOL_RECORD_COUNTER = 39,
	/* A progress point. u dt, u spool_progress, u region id */
	SPOOL_RECORD_PROGRESS = 40,
	/* A whole call at its end, where begin and end were not worth two records: u dt (to its end), u duration in
	 * ticks, u region id. Nothing was recorded inside it. */
	SPOOL_RECORD_REGION_WHOLE = 41,
	/* A collection window opened or closed (since 1.8): regions count from here on, or up to here. The first one
	 * of a process with windows says how it begins. x ticks, u 1 open, 0 closed */
	SPOOL_RECORD_REGION_WINDOW = 44,

	/* ---- call-tree profile of regions (since 1.1) ----
	 * What a profile measures, once per process. u component count, then per component: b name, b unit,
	 * b description, u spool_component_kind, u scale: 0 stored values are ticks
	 * (the unit is ns), 1 they are in the unit; RATIO, which is not stored: numerator << 8 | denominator, places
	 * in this list */
	SPOOL_RECORD_COMPONENTS = 48,
	/* A part of a tree, updated in place: struct spool_profile_part, then nodes. Alone in its chunk, behind an
	 * empty STRING that aligns it. */
	SPOOL_RECORD_PROFILE = 49,
	/* A tree changed hands: its thread ended and another goes on with it (PROFILE_MAX_THREADS). u tree id,
	 * u internal id, u tid */
	SPOOL_RECORD_PROFILE_SHARED = 50,
	/* Allocation call sites (malloc wrappers): u count, then per site: u id, u frames, x address each. Since
	 * 1.8, at the end, of the last site: x ticks when it was met first */
	SPOOL_RECORD_CALL_SITE = 51,
	/* Sums of an allocation site, cumulative; the last one counts. u id, u allocations, u frees, u bytes
	 * allocated, u bytes freed, u peak bytes; since 1.8: x ticks, u temporary allocations (freed before their
	 * thread allocated anything else) */
	SPOOL_RECORD_ALLOCATIONS = 52,
	/* Who this process is in a parallel job, as soon as known. u rank, u size, b source ("MPI_COMM_WORLD",
	 * "OMPI_COMM_WORLD_RANK", ...) */
	SPOOL_RECORD_RANK = 53,
	/* Allocations of the whole process so far (since 1.8). x ticks, u 1: nothing is missing up to here; u
	 * allocations, u frees, u live bytes, u peak bytes, u classes, u allocations each: class n has the sizes above
	 * 2^(n-1) up to 2^n bytes, class 0 has 0 and 1 */
	SPOOL_RECORD_ALLOCATION_TOTALS = 54,
	/* What sites held at the peak of the process's live bytes (since 1.8). x ticks, u number of the peak (the
	 * highest counts; it may have several records), u bytes of the process, u sites, then u id, u bytes each */
	SPOOL_RECORD_ALLOCATION_PEAK = 55,

	/* ---- instrumented functions (since 1.2) ----
	 * A module is instrumented: function ids first..first+count-1 are the functions of its plan (kymo/plan.h).
	 * x ticks, u first id, u count, x bias (address = link-time address + bias), x arena address,
	 * x arena size, b path of the plan or of the rewritten file that holds it, b path of the module */
	SPOOL_RECORD_INSTRUMENTED = 56,
	/* Calls of one thread: struct spool_calls, then words of 8 bytes up to the end of the record; a word of 0
	 * was never written. Alone in its chunk, behind an empty STRING that aligns it; `committed` covers the whole
	 * chunk from the start. */
	SPOOL_RECORD_CALLS = 57,
	/* Calls that were only counted. u internal id (of any thread: sums over threads are meant), u count, then
	 * (u function id, u calls) each; cumulative per internal id, the last record counts */
	SPOOL_RECORD_CALL_COUNTS = 58,
	/* Functions whose tracing was given up because they are short and called often: u function id, u plan_mode
	 * that it has now; x ticks */
	SPOOL_RECORD_CALL_DEMOTED = 59,

	/* ---- interpreted functions (since 1.8) ----
	 * A code object of an interpreter, which frames name by its id; it may be described more than once, then the
	 * last one counts. u code id, u spool_interpreter, u spool_line_table, u first line, u bytes of its line
	 * table, b qualified name, b file. May stand in any chunk, also after its first use. */
	SPOOL_RECORD_INTERPRETED_CODE = 60,
	/* Bytes of the line table of a code object, after its description. u code id, u offset, b bytes */
	SPOOL_RECORD_INTERPRETED_LINES = 61,

	/* ---- work on devices (since 1.9) ----
	 * The stack of a call that launches work on a device, which the records of the work name by its number
	 * (kymo/gpu_records.h). u number, x ticks, u spool_stack_end, u frames, s each, innermost first, as a
	 * difference to the one before: return addresses and frames of interpreted code; u how many of these, the
	 * outermost ones, are of another thread, of interpreted code, which waited. The same stack may have several
	 * numbers. May stand in any chunk. */
	SPOOL_RECORD_LAUNCH_PATH = 62,

	/* ---- coverage of interpreted code (since 1.9) ----
	 * What of a code object ran. u code id, u what: 0: it is looked at, and described; 1: it was called; more: this
	 * line plus one ran. Each is written once at least. May stand in any chunk. */
	SPOOL_RECORD_INTERPRETED_COVERAGE = 63,

	/* ---- the whole machine (since 1.10) ----
	 * The control group of the process. b path in its hierarchy */
	SPOOL_RECORD_CGROUP = 64,
	/* What the samples of the process stand for, by CPU: u count, then (u CPU, u ns) each */
	SPOOL_RECORD_TIMES_BY_CPU = 65,
	/* Waits of one thread with the same stack and the same waker (since 1.10). u internal id, u tid, u waits, u ns,
	 * u ns of the longest, u spool_stack_end, u frames, s each, innermost first, as a difference to the one before;
	 * u spool_waker, u pid, u image and u tid of the waker, b its name, u frames, s each: its stack, of its process. Tid 0:
	 * waits of all threads that no room was found for, without stacks */
	SPOOL_RECORD_WAITS = 66,

	/* Kinds from here to 255: a SAMPLE whose flags byte is not in the payload but is the kind itself, less this. */
	SPOOL_RECORD_SAMPLE_COMPACT = 128
};
/* clang-format on */

#define SPOOL_SAMPLE_TIME_SHIFT 8

/* A frame of interpreted code, in the place of an address: this bit, which no address of a program
 * has, the id of its code object (from 1, less than SPOOL_INTERPRETED_CODE_IDS), and where it is:
 * the number of the instruction unit that it executes plus one; 0: before the first. */
#define SPOOL_INTERPRETED_FRAME_BIT     (1ull << 47)
#define SPOOL_INTERPRETED_POSITION_BITS 22
#define SPOOL_INTERPRETED_CODE_IDS      (1u << 24)

/* A frame in the kernel: its address without the highest bit, which all of the kernel's have. No
 * address of a program has the bit below it (since 1.8). The module of them all has this path, and
 * starts where the kernel's code does. */
#define SPOOL_KERNEL_FRAME_LOST_BIT (1ull << 63)
#define SPOOL_KERNEL_MODULE_PATH    "[kernel]"

static inline int spool_frame_is_interpreted(uint64_t frame)
{
	return frame >> 47 == 1;
}

/* Who ended a wait. */
enum spool_waker {
	SPOOL_WAKER_UNKNOWN,
	SPOOL_WAKER_THREAD,
	SPOOL_WAKER_INTERRUPT, /* a timer, or a device */
	SPOOL_WAKER_NOBODY,    /* it goes on at the end of the recording */
	SPOOL_WAKER_COUNT
};

enum spool_interpreter { SPOOL_INTERPRETER_CPYTHON = 1 };

/* What a thread of an interpreter does about the lock that lets one thread at a time execute
 * (Python's GIL). Append only. */
enum spool_interpreter_state {
	SPOOL_INTERPRETER_STATE_NONE,  /* not a thread of an interpreter, or it is not known */
	SPOOL_INTERPRETER_RUNS_LOCKED, /* runs, and has the lock */
	SPOOL_INTERPRETER_RUNS_UNLOCKED,
	SPOOL_INTERPRETER_WAITS_FOR_LOCK,
	SPOOL_INTERPRETER_WAITS_UNLOCKED, /* waits for something else */
	SPOOL_INTERPRETER_WAITS_LOCKED,   /* the same, and has the lock meanwhile */
	SPOOL_INTERPRETER_STATE_COUNT
};

/* How a line table is coded. Positions are units of 2 bytes of byte code. */
enum spool_line_table {
	SPOOL_LINES_NONE,         /* only the first line is known */
	SPOOL_LINES_CPYTHON_3_6,  /* co_lnotab: pairs (bytes of code, signed lines) */
	SPOOL_LINES_CPYTHON_3_10, /* co_linetable of 3.10: pairs (bytes of code, signed lines) */
	SPOOL_LINES_CPYTHON_3_11  /* co_linetable from 3.11 on */
};

enum spool_region_kind { SPOOL_REGION_NAMED, SPOOL_REGION_FUNCTION };

enum spool_region_end {
	SPOOL_REGION_END_ALONE, /* regions inside it stay open: they overlap it, or their own end
				   is missing, which then was here */
	SPOOL_REGION_END_WITH_INNER, /* and all regions inside it (left by longjmp, an exception, or
					a missing end) */
	/* It did not end: of the regions whose surrounding region ended alone, the outermost one of
	 * this name is waited for no longer, because there are too many (since 1.8) */
	SPOOL_REGION_END_GIVEN_UP
};

enum spool_value_type {
	SPOOL_VALUE_SIGNED,
	SPOOL_VALUE_UNSIGNED,
	SPOOL_VALUE_ADDRESS,
	SPOOL_VALUE_REAL,
	SPOOL_VALUE_TEXT
};

enum spool_progress { SPOOL_PROGRESS_POINT, SPOOL_PROGRESS_BEGIN, SPOOL_PROGRESS_END };

/* How the values of a component add up. */
enum spool_component_kind {
	SPOOL_COMPONENT_PHASE, /* difference between end and begin: time, faults, bytes, events */
	SPOOL_COMPONENT_LEVEL, /* value at the end of a call: a high-water mark or a level */
	SPOOL_COMPONENT_COUNT, /* calls alone (trip_count) */
	SPOOL_COMPONENT_RATIO  /* percent: of the sums of two components, see its description; not
				  stored */
};

/* Head of a PROFILE record. Written in place while the program runs: whoever reads a process that
 * is alive, or died in the midst of a call, sees sums that are at most one call apart. Nodes are
 * numbered through all parts of a tree; a child's number is larger than its parent's. */
struct spool_profile_part {
	uint32_t tree;        /* id of the tree in this process */
	uint32_t internal_id; /* thread that it was made for */
	uint32_t tid;
	uint32_t components; /* stored ones (not RATIO), in the order of COMPONENTS */
	uint32_t node_size;  /* bytes of a node: header and components */
	uint32_t first_node; /* number of the first node in this part; node 0 is the root */
	uint32_t node_count; /* in use in this part; stored with release order */
	uint32_t reserved;
};

struct spool_profile_node {
	uint32_t region; /* 0: the root, or "(more)": what no node could be had for */
	uint32_t parent; /* number */
	uint64_t count;  /* calls that ended */
	uint64_t open;   /* calls that began and did not end yet */
};

/* One a component behind each node. Behind the last of them there is, once a node, a struct
 * spool_profile_open. */
struct spool_profile_value {
	uint64_t sum, minimum, maximum;
	uint64_t square_low, square_high; /* sum of squares, 128 bits */
};

/* Behind the components of a node (since 1.8; node_size says whether it is there): how long the
 * calls that are open have lasted so far. */
struct spool_profile_open {
	uint64_t begin_ticks_sum; /* of those that go on, modulo 2^64 */
	uint64_t stopped;         /* of `open`: calls that ended with their threads */
	uint64_t stopped_ticks;   /* what these took */
	uint64_t left;            /* of `open`: calls that a region around them ended without */
	uint64_t left_ticks;      /* what these took until then */
	uint64_t self_ticks;      /* its own beyond its sum less its children's; modulo 2^64 */
};

/* Head of a CALLS record: who, since when, and what was open at its start, so that a reader can
 * start at any chunk. open_count ids (4 bytes each, padded to 8) follow, outermost first, then the
 * words. */
struct spool_calls {
	uint32_t internal_id, tid;
	uint64_t ticks; /* not later than any word's time */
	uint32_t open_count;
	uint32_t open_left_out; /* outermost ones that are not listed */
};

/* A word: bit 0: exit; bits 1-20: function id; bits 21-63: the low 43 bits of ticks. Times of one
 * thread follow each other within half of that range; a word may be a little earlier than the one
 * before it. An exit ends the innermost open call of its id with all that is inside it. Id 0 with
 * the exit bit: the thread's calls are all at an end (it ended, or kymo left). */
#define SPOOL_CALL_EXIT       1u
#define SPOOL_CALL_ID_SHIFT   1
#define SPOOL_CALL_ID_BITS    20
#define SPOOL_CALL_TICK_SHIFT 21

enum spool_notice {
	SPOOL_NOTICE_SOURCE = 1,   /* argument: spool_cpu_source; text: why */
	SPOOL_NOTICE_FALLBACK,     /* argument: errno; text: what was tried, what is used instead */
	SPOOL_NOTICE_THROTTLE,     /* argument: new period ns */
	SPOOL_NOTICE_WINDOW,       /* argument: 1 opened, 0 closed */
	SPOOL_NOTICE_DISABLED,     /* a collector turned itself off; text: why */
	SPOOL_NOTICE_EXEC,         /* the image is about to be replaced; text: path */
	SPOOL_NOTICE_LOW_COVERAGE, /* argument: internal thread id; text */
	SPOOL_NOTICE_CONFLICT,     /* the program uses a signal that kymo needs; argument: signal */
	SPOOL_NOTICE_NOT_FOLLOWED, /* a child that leaves no data; argument: pid; text: path and why
				      (since 1.1) */
	SPOOL_NOTICE_SOURCE_CHANGED, /* a thread's samples come from another source, because it
					changes context often; argument: changes a second (since
					1.5) */
	SPOOL_NOTICE_SWITCH_COST     /* a thread changes context often, which its perf events make
					costly; argument: changes a second; text: why they stay (since
					1.5) */
};

enum spool_cpu_source {
	SPOOL_CPU_SOURCE_NONE,
	SPOOL_CPU_SOURCE_PERF_SIGTRAP,
	SPOOL_CPU_SOURCE_PERF_SIGNAL,
	SPOOL_CPU_SOURCE_TIMER,
	SPOOL_CPU_SOURCE_OUTSIDE /* the kymo command, by perf events (since 1.8) */
};

/* Metrics of one thread at one sample; cumulative counters since thread start except where said. */
enum spool_metric {
	SPOOL_METRIC_THREAD_CPU_NS,
	SPOOL_METRIC_PEAK_RSS_BYTES, /* of the process, high-water mark */
	SPOOL_METRIC_MINOR_FAULTS,
	SPOOL_METRIC_MAJOR_FAULTS,
	SPOOL_METRIC_VOLUNTARY_SWITCHES,
	SPOOL_METRIC_INVOLUNTARY_SWITCHES,
	SPOOL_METRIC_COUNTER0, /* optional perf counters, COUNTER0 + i as listed in
				  SAMPLING_COUNTERS */
	SPOOL_METRIC_COUNT = SPOOL_METRIC_COUNTER0 + 8
};

/* Metrics of the process, from the background thread. */
enum spool_process_metric {
	SPOOL_PROCESS_RSS_BYTES = 1,
	SPOOL_PROCESS_VIRTUAL_BYTES,
	SPOOL_PROCESS_PEAK_RSS_BYTES,
	SPOOL_PROCESS_MINOR_FAULTS,
	SPOOL_PROCESS_MAJOR_FAULTS,
	SPOOL_PROCESS_VOLUNTARY_SWITCHES,
	SPOOL_PROCESS_INVOLUNTARY_SWITCHES,
	SPOOL_PROCESS_USER_NS,
	SPOOL_PROCESS_SYSTEM_NS,
	SPOOL_PROCESS_THREADS,
	SPOOL_PROCESS_READ_BYTES, /* storage, /proc/self/io read_bytes */
	SPOOL_PROCESS_WRITTEN_BYTES,
	SPOOL_PROCESS_READ_CHARS, /* all read-like calls, rchar */
	SPOOL_PROCESS_WRITTEN_CHARS,
	SPOOL_HOST_CPU_BUSY_NS, /* all CPUs together, cumulative */
	SPOOL_HOST_CPU_TOTAL_NS,
	/* Since 1.4, where the process is in a control group with a CPU limit; cumulative, but for
	 * the limit: thousandths of a CPU, 0 when it was taken away */
	SPOOL_CGROUP_CPU_LIMIT,
	SPOOL_CGROUP_PERIODS,
	SPOOL_CGROUP_THROTTLED_PERIODS,
	SPOOL_CGROUP_THROTTLED_NS,        /* all CPUs together */
	SPOOL_HOST_CPU_FREQUENCY_KHZ = 64 /* + cpu number (up to 1023) */
};

enum spool_control {
	SPOOL_CONTROL_START = 1, /* collect */
	SPOOL_CONTROL_STOP,      /* do not, until start */
	SPOOL_CONTROL_FLUSH,     /* make everything so far part of the file */
	SPOOL_CONTROL_DETACH     /* end for good: as if kymo were not there */
};

enum spool_state {
	SPOOL_STATE_OPEN = 1,   /* running, or ended without a word (SIGKILL, crash, _exit) */
	SPOOL_STATE_EXITED = 2, /* exit handlers ran */
	SPOOL_STATE_EXEC = 3,   /* the image was replaced by exec */
	SPOOL_STATE_LEFT = 4,   /* kymo left the process, which went on */
	SPOOL_STATE_MOVED = 5   /* of a short process: it lived on, and has a file of its own */
};

enum spool_image_origin {
	SPOOL_IMAGE_EXECUTED = 1, /* so the loader loaded kymo, or kymo was attached */
	SPOOL_IMAGE_FORKED,       /* with the memory that collection took, here or in an ancestor */
	SPOOL_IMAGE_FORKED_SHORT  /* from a short process, which has none of that */
};

/* First page of the file. Multi-byte fields that change while the program runs are written with
 * atomic stores. */
struct spool_file_header {
	char magic[8];
	uint16_t version_major;
	uint16_t version_minor;
	uint32_t header_size; /* SPOOL_ALIGNMENT */
	uint32_t pid;
	uint32_t parent_pid;
	uint64_t process_start; /* field 22 of /proc/self/stat, clock ticks since boot: identity
				   across pid reuse */
	uint32_t image;         /* n-th image of this pid: 0, after exec 1, … */
	uint32_t tick_clock;    /* 0: ticks are TSC; 1: ticks are CLOCK_MONOTONIC ns */
	uint64_t tick_hz;       /* from CPUID or calibration; 0: use CLOCK records only */
	uint64_t start_ticks;
	uint64_t start_monotonic_ns;
	uint64_t start_boottime_ns;
	uint64_t start_realtime_ns;
	uint32_t state;          /* spool_state */
	int32_t exit_status;     /* wait status where the process itself knew it, else -1 */
	uint64_t end_ticks;      /* last time the background thread was alive */
	uint64_t file_size;      /* bytes handed out so far */
	uint64_t samples;        /* written by all threads */
	uint64_t signals;        /* sampling signals handled */
	uint64_t handler_ticks;  /* time inside the handler, all threads */
	uint64_t threads;        /* registered so far */
	uint64_t stacks[16];     /* by spool_stack_end */
	uint64_t losses[32];     /* by spool_loss */
	uint64_t cpu_covered_ns; /* sum of CPU sample weights */
	uint64_t helper_cpu_ns;  /* CPU time of kymo's own threads in this process */
	uint64_t region_events;  /* region records written (since 1.1) */
	/* Control from outside (kymo ctl): who asks writes command, then adds 1 to request; the
	 * process copies request to answer when it is done. */
	uint32_t control_command; /* spool_control */
	uint32_t control_request;
	uint32_t control_answer;
	uint32_t collecting; /* 1: windows and switches are open */
	/* Since 1.6: what kymo cost the process beside its handler and its helper. */
	uint64_t own_work_ns; /* CPU time of the program's threads in kymo's work at the start, at
				 forks, before exec and at the end */
	uint64_t switch_cost_ns; /* estimated: perf events stopped and started at switches */
	uint64_t origin;         /* spool_image_origin */
	/* Since 1.7: records in chunks that SPOOL_LOSS_RING_OVERWRITE counts. */
	uint64_t overwritten_bytes;
	uint8_t reserved[4096 - 8 * 74];
};

/* An entry of the shared file. `file_size` is that of the entry; ticks are ns of CLOCK_MONOTONIC;
 * entries of one process have the same pid and start_ticks, and the last one's header counts. */
#define SPOOL_SHORT_NAME   "short-processes"
#define SPOOL_SHORT_PATH   "%s/" SPOOL_SHORT_NAME /* printf(3): of a result directory */
#define SPOOL_SHORT_MAGIC  "KYMOSHT"              /* 7 characters and the terminating zero */
#define SPOOL_SHORT_HEADER offsetof(struct spool_file_header, reserved)
/* That of 1.5, which readers take as well. */
#define SPOOL_SHORT_HEADER_FIRST offsetof(struct spool_file_header, own_work_ns)

struct spool_chunk_header {
	uint32_t magic;
	uint32_t size;      /* of the chunk with this header; multiple of SPOOL_ALIGNMENT */
	uint32_t committed; /* bytes after this header that hold whole records; stored with release
			       order */
	uint32_t state;     /* 0 never used, 1 in use, 2 full, 3 in place: never reused */
	uint64_t sequence;  /* order of handing out in this process, from 1; 0: never used; of two
			       chunks with the same the first in the file counts, the other is its
			       copy */
	uint64_t reserved[5];
};

#ifdef __cplusplus
#define SPOOL_STATIC_ASSERT static_assert
#else
#define SPOOL_STATIC_ASSERT _Static_assert
#endif
SPOOL_STATIC_ASSERT(sizeof(struct spool_file_header) == SPOOL_ALIGNMENT, "file header is one page");
SPOOL_STATIC_ASSERT(sizeof(struct spool_chunk_header) == SPOOL_CHUNK_HEADER_SIZE,
		    "chunk header size");

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The session model: everything that one run (a tree of processes) recorded, ready for outputs.
 *
 * Life: session_open() (analysis/open/open.h) reads metadata and every spool file (pass 1):
 * processes, threads, modules, notices, losses, process metrics, and a tree of code addresses with
 * its sums. session_symbolize() gives each distinct address its function, file, line and inline
 * chain, and makes frames and nodes; there are none before. After that the model is immutable.
 * session_visit_samples() streams over the samples again (pass 2) for outputs that need each one;
 * nothing in the model grows with the number of samples, only with distinct stacks, threads and
 * processes.
 *
 * Ids are dense indexes into the arrays below. Times are ns of CLOCK_BOOTTIME, weights ns (CPU,
 * wall, runnable) or events (overflow). Strings are owned by the session, never NULL unless said,
 * valid UTF-8 not guaranteed (escape).
 *
 * Threads: not thread-safe. Errors: functions return 0 or a negative errno and describe it in
 * `struct problem`.
 */
#ifndef KYMO_ANALYSIS_SESSION_H
#define KYMO_ANALYSIS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "analysis/model_source.h"
#include "common/problem.h"
#include "kymo/spool.h"

#define MODEL_ENTRY_INDEX_NONE UINT32_MAX

struct model_module {
	uint32_t process;
	uint64_t start, end;             /* executable mapping in the process */
	uint64_t file_offset;            /* of start */
	uint64_t loaded_ns, unloaded_ns; /* unloaded_ns UINT64_MAX while mapped */
	uint8_t build_id[32];
	uint32_t build_id_size;
	uint64_t inode;
	const char *path; /* "[vdso]", "/usr/lib/…", or "[jit]" for code in no file */
	const char *name; /* last component of path */
	uint64_t samples_unresolved,
		samples_total; /* frames of this module in leaf position, after symbolize */
	const char *advice;    /* what to install to resolve more, or NULL; after symbolize */
};

enum model_frame_kind {
	FRAME_NATIVE,       /* resolved from ELF or DWARF */
	FRAME_INLINE,       /* inlined into the frame outside it */
	FRAME_JIT,          /* from a perf map or jitdump */
	FRAME_UNRESOLVED,   /* function is "[module+0x<function start>]", "[module]" or "[unknown]";
			       relative_pc tells frames apart */
	FRAME_SYNTHETIC,    /* made by kymo: "[stack cut: …]", "[no stack: …]", "[unsampled]" */
	FRAME_THREAD_STATE, /* what the thread did in the frame outside it:
			     * MODEL_WAITS_FOR_CPU_FRAME_NAME
			     */
	FRAME_INTERPRETED,  /* of an interpreter, in the place of the native frame that runs it; in
			       no module */
	FRAME_DEVICE_WORK   /* a kernel, copy or fill on a device, in the stack of its launch; in no
			       module */
};

/* The innermost frame of RUNNABLE samples. */
#define MODEL_WAITS_FOR_CPU_FRAME_NAME "[waiting for a CPU]"

/* One distinct function occurrence at an address of a module, or at a line of interpreted code; the
 * unit in which outputs count. */
struct model_frame {
	const char *function;     /* demangled */
	const char *linkage_name; /* as in the symbol table; NULL if same as function */
	const char *file;         /* source path or NULL */
	uint32_t line;            /* of the code address; 0 unknown */
	uint32_t function_line;   /* where the function begins; 0 unknown */
	uint32_t module;          /* MODEL_ENTRY_INDEX_NONE for synthetic frames */
	uint64_t relative_pc;     /* link-time address in the module (ELF vaddr); 0 for synthetic */
	enum model_frame_kind kind;
	uint32_t function_id; /* same for all frames of one (function, module); dense, <
				 session.function_count */
};

/* A node of a process's calling-context tree. Children are linked lists in no particular order.
 * Inlined frames are nodes of their own. A parent's index is smaller than its children's. */
struct model_calltree_node {
	uint32_t parent; /* MODEL_ENTRY_INDEX_NONE for roots */
	uint32_t frame;
	uint32_t process;
	uint32_t first_child, next_sibling;
	uint32_t depth; /* roots: 0 */
	/* Sums over all threads of the process, by source; self only. Inclusive ones are computed
	 * by views. Weights: ns for CPU, WALL, RUNNABLE, DEVICE; events for OVERFLOW. */
	uint64_t self_samples[MODEL_SOURCE_COUNT];
	uint64_t self_weight[MODEL_SOURCE_COUNT];
};

struct model_thread {
	uint32_t process;
	uint32_t internal_id, sequent_id, tid;
	uint32_t parent; /* thread index or MODEL_ENTRY_INDEX_NONE */
	const char *name;
	int how;                   /* as in SPOOL_RECORD_THREAD_START */
	uint64_t start_ns, end_ns; /* end_ns UINT64_MAX: alive at the end of data */
	uint64_t cpu_ns;           /* total CPU time, if recorded and all of it is wanted, else
				      covered_ns */
	uint64_t covered_ns;       /* sum of CPU sample weights */
	uint64_t blocked_ns;       /* CPU time with kymo's signal blocked, in no sample */
	uint64_t samples[MODEL_SOURCE_COUNT];
	uint64_t weight[MODEL_SOURCE_COUNT];
	/* ns of CPU and, with --realtime, blocked time by what it did about its interpreter's lock;
	 * all 0: it is no thread of an interpreter. What it waited for a CPU is apart, whatever it
	 * did before. */
	uint64_t interpreter_state_ns[SPOOL_INTERPRETER_STATE_COUNT], interpreter_queued_ns;
};

struct model_metric_sample {
	uint64_t time_ns;
	uint32_t metric; /* spool_process_metric */
	uint64_t value;
};

struct model_notice {
	uint64_t time_ns;
	enum spool_notice kind;
	uint64_t argument;
	const char *text;
};

/* What samples stand for, on one CPU. */
struct model_cpu_time {
	uint32_t cpu;
	uint64_t ns;
};

struct model_process {
	uint32_t pid, parent_pid, image;
	uint64_t process_start;
	const char *spool_path;
	const char *executable, *command_line /* shell-quoted */, *name, *host, *working_directory;
	const char *const *arguments;
	uint32_t argument_count;
	uint64_t start_ns, end_ns;
	uint32_t state;                      /* spool_state */
	int wait_status;                     /* wait status, or -1 unknown */
	uint32_t first_thread, thread_count; /* indexes into session.threads */
	uint32_t first_module, module_count;
	struct model_metric_sample *metrics;
	size_t metric_count;
	struct model_notice *notices;
	size_t notice_count;
	uint64_t samples;                                  /* decoded */
	uint64_t header_sample_count;                      /* as counted by the process */
	uint64_t stacks[16];                               /* by spool_stack_end, decoded */
	uint64_t losses[32];                               /* by spool_loss */
	uint64_t torn_bytes, torn_chunks, unknown_records; /* what repair had to skip */
	uint64_t signals, handler_ns, helper_cpu_ns, cpu_covered_ns;
	uint64_t kymo_work_ns, perf_event_switch_cost_ns; /* as in the spool file's header */
	enum spool_image_origin origin;                   /* 0: not known */
	/* Announced, and ended before it had used the CPU time from which processes are sampled. */
	bool is_short_process;
	uint64_t spool_file_bytes, sample_record_bytes; /* file size; bytes of sample records */
	uint64_t overwritten_bytes; /* of the oldest records, at the limit (SPOOL_RING) */
	uint64_t first_sample_ns;   /* the earliest that is there; 0: none is */
	uint64_t region_record_bytes, region_events;
	/* The rank in a parallel job (RANK record); rank_count 0: not part of one. */
	uint32_t rank, rank_count;
	const char *rank_source;
	enum spool_cpu_source cpu_source;
	const char *cpu_source_reason;
	/* Where the whole machine was sampled; NULL and none: it was not, or they are not known. */
	const char *cgroup;
	const struct model_cpu_time *times_by_cpu;
	uint32_t times_by_cpu_count;
};

/* What the launcher wrote beside the spool (launch.json). Times are CLOCK_REALTIME. */
struct model_setting {
	const char *name, *value, *origin; /* origin: "option", "environment", … */
};

struct model_program_launch {
	bool known;                  /* the file was there and could be read */
	bool attached;               /* by `kymo attach` */
	bool is_wait_status_known;   /* the program had ended when it was written */
	int wait_status;             /* as from waitpid() */
	uint32_t pid;                /* 0: unknown */
	uint64_t user_ns, system_ns; /* of the program and all its waited-for children */
	uint64_t start_realtime_ns, end_realtime_ns; /* 0: unknown */
	/* kymo's cost of an executed image, a fork, a signal; 0: not known */
	uint64_t load_ns, fork_ns, signal_ns;
	const char *kymo_version, *host, *working_directory;
	const char *const *command;
	uint32_t command_argument_count;
	const struct model_setting *settings;
	uint32_t setting_count;
};

/* What one kind of data beside samples keeps in a session (analysis/session_kind.h). */
#define SESSION_DATA_KINDS_MAX 8

struct session_data_kind_operations;

struct session_data_of_kind_entry {
	const char *name;
	const struct session_data_kind_operations *kind; /* NULL: made by hand */
	void *data;                                      /* of the session */
	void *processes;                                 /* by process */
};

struct session {
	const char *directory;
	const char *results, *results_display_name; /* where output files are; for people */
	const char *command_line;                   /* of the launched program */
	struct model_process *processes;
	struct model_thread *threads;
	struct model_module *modules;
	struct model_frame *frames;
	struct model_calltree_node *nodes;
	uint32_t process_count, thread_count, module_count, frame_count, node_count, function_count;
	uint64_t start_ns, end_ns; /* first and last thing recorded */
	int64_t realtime_minus_boottime_ns;
	/* A filter is on: CPU times of threads are those of their samples (has_only_part_of_time),
	 * or threads and processes are missing (has_only_part_of_threads). */
	bool has_only_part_of_time, has_only_part_of_threads;
	uint64_t unreadable_file_count; /* spool files that could not be read at all; each is in
				      `problems` */
	char **problems;                /* one line each, for the summary */
	size_t problem_count;
	struct model_program_launch launch;
	struct session_data_of_kind_entry data_kinds[SESSION_DATA_KINDS_MAX];
	uint32_t data_kind_count;
	void *private_state;
};

/* The index of the data of the kind with this name; data_kind_count: the session has none. */
static inline uint32_t session_find_kind_index(const struct session *session, const char *name)
{
	uint32_t i = 0;

	while (i < session->data_kind_count && session->data_kinds[i].name != name &&
	       strcmp(session->data_kinds[i].name, name) != 0)
		i++;
	return i;
}

/* For the functions by which each kind offers its data, such as session_get_regions(). NULL: the
 * session has none. */
static inline void *session_find_kind_data(const struct session *session, const char *name)
{
	uint32_t i = session_find_kind_index(session, name);

	return i < session->data_kind_count ? session->data_kinds[i].data : NULL;
}

/* The kind's data of all processes. */
static inline void *session_find_kind_data_of_processes(const struct session *session,
							const char *name)
{
	uint32_t i = session_find_kind_index(session, name);

	return i < session->data_kind_count ? session->data_kinds[i].processes : NULL;
}

/* Sets the data of a kind, for its open() and for sessions that are made by hand. */
static inline void session_set_kind_data(struct session *session, const char *name, void *data)
{
	uint32_t i = session_find_kind_index(session, name);

	if (i == session->data_kind_count) {
		session->data_kinds[i] = (struct session_data_of_kind_entry){.name = name};
		session->data_kind_count++;
	}
	session->data_kinds[i].data = data;
}

struct session_options {
	bool with_inlines;
	const char *debug_search_path;      /* colon-separated, or NULL for the default */
	const char *symbol_cache_directory; /* directory, or NULL for the default, "" for none */
	/* Filters; empty means all. */
	uint32_t filter_process_pid; /* 0: all */
	uint32_t filter_thread_tid;  /* 0: all */
	uint64_t from_ns, to_ns;     /* relative to session start; to_ns 0: to the end */
	bool skip_symbolizing;       /* do not symbolize */
	bool skip_advice; /* do not find out what to install for the names of more functions */
	uint32_t profile_nodes; /* most nodes of a tree of regions made of events; 0: the default */
	/* Where the results are, if not in the directory that is read, and its name for people. */
	const char *results, *results_display_name;
};

void session_close(struct session *session);
/* When a process was made, CLOCK_REALTIME, as exactly as the kernel keeps it (10 ms); 0: unknown.
 */
uint64_t session_get_process_creation_ns(const struct session *session, uint32_t process);
/* The process's user, by who owns its spool file. */
uid_t session_get_process_owner_uid(const struct session *session, uint32_t process);

/* A sample as streamed in pass 2. `node` is the leaf node (innermost inline frame once symbolized).
 */
struct model_sample {
	uint64_t time_ns;
	uint64_t weight;
	uint32_t process, thread, node;
	enum spool_sample_source source;
	enum spool_stack_end stack_end_reason;
	uint32_t event;     /* OVERFLOW: index */
	uint32_t is_repeat; /* 1 for SAMPLE_REPEAT */
	enum spool_interpreter_state interpreter_state;
	bool blocked; /* no sample: time that none stands for, since kymo's signal was blocked */
	uint32_t metric_bitmap;               /* which of metrics[] are set */
	uint64_t metrics[SPOOL_METRIC_COUNT]; /* absolute */
};

/* Calls `each` for every sample, chunk by chunk: samples of one thread are in order within a chunk,
 * not overall. `each` returns 0 to go on, anything else ends the walk and is returned. */
int session_visit_samples(struct session *session, int (*each)(const struct model_sample *, void *),
			  void *context, struct problem *problem);

/* The function of time that no sample covers, and of time in which the program had kymo's signal
 * blocked. */
#define SESSION_UNSAMPLED_TIME_FRAME_NAME  "[unsampled]"
#define SESSION_SIGNALS_BLOCKED_FRAME_NAME "[not sampled: signals blocked]"

/* Samples that the process counted in the header of its file and that the file does not hold: it
 * was cut short. */
uint64_t session_get_missing_sample_count(const struct session *session, uint32_t process);

const char *spool_loss_name(enum spool_loss loss); /* "disk_full", … for JSON keys and text */
const char *spool_stack_end_get_name(enum spool_stack_end end); /* "complete", "no_table", … */

/* The same for people, as the root frame of such stacks is named: "stack cut: unreadable memory".
 */
const char *spool_stack_end_get_text(enum spool_stack_end end);
/* Why there is none: "waits too short to be seen", … */
const char *spool_no_stack_get_reason_text(enum spool_no_stack reason);
const char *spool_cpu_source_get_name(enum spool_cpu_source source);
const char *spool_notice_get_name(enum spool_notice notice); /* "source", "fallback", … */
const char *spool_process_metric_get_name(uint32_t metric, const char **unit);

/* The value of a setting (by name) as the program was started; NULL: not given, the default. */
static inline const char *session_find_launch_setting(const struct session *session,
						      const char *name)
{
	for (uint32_t i = 0; i < session->launch.setting_count; i++) {
		if (!strcmp(session->launch.settings[i].name, name))
			return session->launch.settings[i].value;
	}
	return NULL;
}

#endif

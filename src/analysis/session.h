/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The session model: everything that one run (a tree of processes) recorded, ready for outputs.
 *
 * Life: session_open() reads metadata and every spool file (pass 1): processes, threads, modules,
 * notices, losses, process metrics, and a tree of code addresses with its sums. session_symbolize()
 * gives each distinct address its function, file, line and inline chain, and makes frames and
 * nodes; there are none before. After that the model is immutable. session_each_sample() streams
 * over the samples again (pass 2) for outputs that need each one; nothing in the model grows with
 * the number of samples, only with distinct stacks, threads and processes.
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

#include "common/problem.h"
#include "kymo/spool.h"

#define MODEL_NONE UINT32_MAX

struct model_module {
	uint32_t process;
	uint64_t start, end;             /* executable mapping in the process */
	uint64_t file_offset;            /* of start */
	uint64_t loaded_ns, unloaded_ns; /* unloaded_ns UINT64_MAX while mapped */
	uint8_t build_id[32];
	uint32_t build_id_size;
	const char *path; /* "[vdso]", "/usr/lib/…", or "[jit]" for code in no file */
	const char *name; /* last component of path */
	uint64_t samples_unresolved,
		samples_total; /* frames of this module in leaf position, after symbolize */
	const char *advice;    /* what to install to resolve more, or NULL; after symbolize */
};

enum model_frame_kind {
	FRAME_NATIVE,     /* resolved from ELF or DWARF */
	FRAME_INLINE,     /* inlined into the frame outside it */
	FRAME_JIT,        /* from a perf map or jitdump */
	FRAME_UNRESOLVED, /* function is "[module+0x<function start>]", "[module]" or "[unknown]";
			     relative_pc tells frames apart */
	FRAME_SYNTHETIC   /* made by kymo: "[truncated: …]", "[unsampled]" */
};

/* One distinct function occurrence at a source position in a module; the unit in which outputs
 * count. */
struct model_frame {
	const char *function;     /* demangled */
	const char *linkage_name; /* as in the symbol table; NULL if same as function */
	const char *file;         /* source path or NULL */
	uint32_t line;            /* of the code address; 0 unknown */
	uint32_t function_line;   /* where the function begins; 0 unknown */
	uint32_t module;          /* MODEL_NONE for synthetic frames */
	uint64_t relative_pc;     /* link-time address in the module (ELF vaddr); 0 for synthetic */
	enum model_frame_kind kind;
	uint32_t function_id; /* same for all frames of one (function, module); dense, <
				 session.function_count */
};

/* A node of a process's calling-context tree. Children are linked lists in no particular order.
 * Inlined frames are nodes of their own. A parent's index is smaller than its children's. */
struct model_node {
	uint32_t parent; /* MODEL_NONE for roots */
	uint32_t frame;
	uint32_t process;
	uint32_t first_child, next_sibling;
	uint32_t depth; /* roots: 0 */
	/* Sums over all threads of the process, by source; self only. Inclusive ones are computed
	 * by views. Weights: ns for CPU, WALL, RUNNABLE; events for OVERFLOW. */
	uint64_t self_samples[SPOOL_SOURCE_COUNT];
	uint64_t self_weight[SPOOL_SOURCE_COUNT];
};

struct model_thread {
	uint32_t process;
	uint32_t internal_id, sequent_id, tid;
	uint32_t parent; /* thread index or MODEL_NONE */
	const char *name;
	int how;                   /* as in SPOOL_RECORD_THREAD_START */
	uint64_t start_ns, end_ns; /* end_ns UINT64_MAX: alive at the end of data */
	uint64_t cpu_ns;           /* total CPU time, if recorded and all of it is wanted, else
				      covered_ns */
	uint64_t covered_ns;       /* sum of CPU sample weights */
	uint64_t samples[SPOOL_SOURCE_COUNT];
	uint64_t weight[SPOOL_SOURCE_COUNT];
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

struct model_process {
	uint32_t pid, parent_pid, image;
	uint64_t process_start;
	const char *spool_path;
	const char *executable, *command_line /* shell-quoted */, *name, *host, *working_directory;
	const char *const *arguments;
	uint32_t argument_count;
	uint64_t start_ns, end_ns;
	uint32_t state;                      /* spool_state */
	int exit_status;                     /* wait status, or -1 unknown */
	uint32_t first_thread, thread_count; /* indexes into session.threads */
	uint32_t first_module, module_count;
	struct model_metric_sample *metrics;
	size_t metric_count;
	struct model_notice *notices;
	size_t notice_count;
	uint64_t samples;                                  /* decoded */
	uint64_t header_samples;                           /* as counted by the process */
	uint64_t stacks[16];                               /* by spool_stack_end, decoded */
	uint64_t losses[32];                               /* by spool_loss */
	uint64_t torn_bytes, torn_chunks, unknown_records; /* what repair had to skip */
	uint64_t signals, handler_ns, helper_cpu_ns, cpu_covered_ns;
	uint64_t spool_bytes, sample_bytes; /* file size; bytes of sample records */
	uint64_t region_bytes, region_events;
	/* Of a parallel job (RANK record); rank_count 0: not part of one. */
	uint32_t rank, rank_count;
	const char *rank_source;
	enum spool_cpu_source cpu_source;
	const char *cpu_source_text;
};

/* What the launcher wrote beside the spool (launch.json). Times are CLOCK_REALTIME. */
struct model_setting {
	const char *name, *value, *origin; /* origin: "option", "environment", … */
};

struct model_launch {
	bool known;                  /* the file was there and could be read */
	bool wait_status_known;      /* the program had ended when it was written */
	int wait_status;             /* as from waitpid() */
	uint32_t pid;                /* 0: unknown */
	uint64_t user_ns, system_ns; /* of the program and all its waited-for children */
	uint64_t start_realtime_ns, end_realtime_ns; /* 0: unknown */
	const char *kymo_version, *host, *working_directory;
	const char *const *command;
	uint32_t command_count;
	const struct model_setting *settings;
	uint32_t setting_count;
};

struct model_regions;
struct model_calls;
struct model_allocations;
struct nccl_data;
struct gpu_data;

struct session {
	const char *directory;
	const char *command_line; /* of the launched program */
	struct model_process *processes;
	struct model_thread *threads;
	struct model_module *modules;
	struct model_frame *frames;
	struct model_node *nodes;
	uint32_t process_count, thread_count, module_count, frame_count, node_count, function_count;
	uint64_t start_ns, end_ns; /* first and last thing recorded */
	int64_t realtime_minus_boottime_ns;
	/* A filter is on: CPU times of threads are those of their samples (part_of_time), or
	 * threads and processes are missing (part_of_threads). */
	bool part_of_time, part_of_threads;
	uint64_t unreadable_files; /* spool files that could not be read at all; each is in
				      `problems` */
	char **problems;           /* one line each, for the summary */
	size_t problem_count;
	struct model_launch launch;
	struct model_regions *regions;         /* regions.h; never NULL */
	struct model_calls *calls;             /* calls.h; never NULL */
	struct model_allocations *allocations; /* allocations.h */
	struct nccl_data *nccl;                /* nccl.h; NULL: no process had the plugin */
	struct gpu_data *gpu;                  /* gpu.h; NULL: no device was recorded */
	void *private_state;
};

struct session_options {
	bool inlines;
	const char *debug_path;   /* colon-separated, or NULL for the default */
	const char *symbol_cache; /* directory, or NULL for the default, "" for none */
	/* Filters; empty means all. */
	uint32_t process_pid;    /* 0: all */
	uint32_t thread_tid;     /* 0: all */
	uint64_t from_ns, to_ns; /* relative to session start; to_ns 0: to the end */
	bool unresolved_only;    /* do not symbolize */
	uint32_t profile_nodes; /* most nodes of a tree of regions made of events; 0: the default */
};

int session_open(const char *directory, const struct session_options *options, struct session **ret,
		 struct problem *problem);
int session_symbolize(struct session *session, struct problem *problem);
void session_close(struct session *session);
/* When a process was made, CLOCK_REALTIME, as exactly as the kernel keeps it (10 ms); 0: unknown.
 */
uint64_t session_process_made_ns(const struct session *session, uint32_t process);

/* A sample as streamed in pass 2. `node` is the leaf node (innermost inline frame once symbolized).
 */
struct model_sample {
	uint64_t time_ns;
	uint64_t weight;
	uint32_t process, thread, node;
	enum spool_sample_source source;
	enum spool_stack_end stack_end;
	uint32_t event;                       /* OVERFLOW: index */
	uint32_t repeat;                      /* 1 for SAMPLE_REPEAT */
	uint32_t metric_bitmap;               /* which of metrics[] are set */
	uint64_t metrics[SPOOL_METRIC_COUNT]; /* absolute */
};

/* Calls `each` for every sample, chunk by chunk: samples of one thread are in order within a chunk,
 * not overall. `each` returns 0 to go on, anything else ends the walk and is returned. */
int session_each_sample(struct session *session, int (*each)(const struct model_sample *, void *),
			void *context, struct problem *problem);

const char *spool_loss_name(enum spool_loss loss); /* "disk_full", … for JSON keys and text */
const char *spool_stack_end_name(enum spool_stack_end end); /* "complete", "no_table", … */
const char *spool_cpu_source_name(enum spool_cpu_source source);
const char *spool_notice_name(enum spool_notice notice); /* "source", "fallback", … */
const char *spool_process_metric_name(uint32_t metric, const char **unit);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Addresses of one module to functions, source lines and inline chains, all at once.
 *
 * A module is a file (path and build-id), whatever processes mapped it wherever, so the addresses
 * here are file offsets: pc - mapping start + mapping's file offset. Give all distinct ones of a
 * module in one call: debug information is read in one pass, and never an address at a time.
 *
 * The file on disk must carry the recorded build-id; if it was replaced since, nothing is resolved
 * rather than resolved wrongly, and `status` and `advice` say so. A module that cannot be resolved
 * is not an error: errors are no memory and bad arguments.
 *
 * Threads: no shared state; calls for different modules may run at the same time.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_SYMBOLS_H
#define KYMO_ANALYSIS_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/problem.h"

struct symbolizer_request {
	const char *path;        /* as recorded, or "[vdso]" */
	const uint8_t *build_id; /* as recorded */
	uint32_t build_id_size;  /* 0: unknown; then the inode must be the same, unless that is 0 */
	uint64_t inode;          /* as recorded; 0: unknown, or another machine's */
	uint32_t pid;            /* of a process that had it mapped, from there to there; 0: none */
	uint64_t mapping_start, mapping_end;
	const uint64_t *offsets; /* file offsets to look up, ascending, no duplicates. For return
				    addresses the caller has subtracted 1. */
	size_t count;
	bool with_inlines; /* false: one frame an address, no source lines: symbol tables
			 only */
	bool skip_advice;  /* which package to install: to find that takes longer than all else */
	const char *debug_search_path; /* colon-separated, NULL for the default (/usr/lib/debug) */
	const char *symbol_cache_directory; /* directory, NULL for the default ($XDG_CACHE_HOME or
				     ~/.cache, then kymo/symbols), "" for none */
};

/* The same for code that a run-time compiler made: addresses are those of the process. */
struct stat;
struct symbolizer_jit_request {
	uint32_t pid;
	uid_t owner; /* the process's user: whose maps in /tmp are believed */
	uint64_t process_start_realtime_ns; /* CLOCK_REALTIME time when the process was made, 0:
			     unknown; maps in /tmp that are older are not its own */
	const char *session_directory; /* a copy perf-<pid>.map or jit-<pid>.dump here counts first;
					  NULL: none */
	const char *jitdump_path;      /* a jit-<pid>.dump that the process mapped, or NULL */
	const uint64_t *pcs;           /* in any order, duplicates allowed */
	const uint64_t
		*sample_times_ns; /* CLOCK_MONOTONIC time of a sample at each pc, 0: unknown; or
			      NULL. Code that was moved or replaced is told apart by it. */
	size_t count;
};

/* A program that is about to be run: its names are found even if the file is replaced or deleted.
 */
void symbolizer_keep_program_open(const char *path);
/* The same for a file that is open, of a process in another root; kymo keeps a duplicate. */
void symbolizer_keep_file_open(int descriptor);

enum symbolizer_status_kind {
	SYMBOLIZER_LINES_AND_NAMES, /* lines and inlines */
	SYMBOLIZER_NAMES_ONLY,      /* full symbol table, no debug information */
	SYMBOLIZER_EXPORTS_ONLY,    /* exported names only; much of the code has none */
	SYMBOLIZER_NO_SYMBOLS,      /* file read, it names nothing */
	SYMBOLIZER_NO_FILE,         /* gone or unreadable */
	SYMBOLIZER_FILE_REPLACED,   /* the file is another one than that which ran */
	SYMBOLIZER_BAD_FILE         /* not an ELF file that can be read */
};

struct symbolizer_frame {
	const char *function;     /* demangled */
	const char *linkage_name; /* as in the symbol table; NULL if the same */
	const char *file;         /* source path of `line`, or NULL */
	uint32_t line;            /* 0: unknown */
	uint32_t function_line;   /* where the function is declared; 0: unknown */
	uint32_t function_id;     /* one for each distinct function of this result, dense */
	bool inlined;             /* into the next frame of the chain */
};

/* Innermost first: frames[first], … frames[first + count - 1]; the last is the real function.
 * count 0: not resolved. */
struct symbolizer_frame_chain {
	uint64_t vaddr; /* link-time address (JIT: the pc); the offset itself where no segment holds
			   it */
	uint32_t first, count;
};

struct symbolizer_request_result {
	struct symbolizer_frame_chain
		*chains;                 /* one for each address, in the order of the request */
	struct symbolizer_frame *frames; /* chains may share frames */
	size_t chain_count, frame_count;
	uint32_t function_count;
	size_t unresolved_chain_count; /* chains without frames */
	enum symbolizer_status_kind status;
	const char *advice; /* what to do to see more, one sentence, or NULL */
	bool from_cache;
	void *string_storage; /* owns all strings above */
};

/* Returns 0, or a negative errno with *ret untouched. Cost: a pass over the symbol tables, with
 * `inlines` also over the debug information of the compilation units concerned. */
int symbolize_module(const struct symbolizer_request *request,
		     struct symbolizer_request_result *ret, struct problem *problem);
int symbolize_jit_code(const struct symbolizer_jit_request *request,
		       struct symbolizer_request_result *ret, struct problem *problem);
/* Whether a map was written before the process was made: by an earlier one with the same pid. */
bool jit_map_predates_process(const struct stat *map, uint64_t made_ns);
void symbolizer_result_deinit(struct symbolizer_request_result *result);

const char *
symbolizer_status_get_name(enum symbolizer_status_kind status); /* "full", "no_file", … */

#endif

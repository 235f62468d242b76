/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was executed at all: of the functions, and the blocks of code, that were instrumented in one
 * run or several, which ran and how often.
 *
 * The whole is what was instrumented, so percentages are of the functions that were chosen, in all
 * modules that were loaded. Runs of the same module (path and build-id) are added up.
 *
 * Life: coverage_compute() after session_open() of all sessions; the sessions may be closed before
 * it is destroyed.
 */
#ifndef KYMO_ANALYSIS_COVERAGE_COVERAGE_H
#define KYMO_ANALYSIS_COVERAGE_COVERAGE_H

#include "analysis/session.h"

struct coverage_code_range {
	uint64_t vaddr;       /* link-time */
	uint64_t file_offset; /* UINT64_MAX: unknown */
	uint64_t calls;
	uint32_t size;
	bool block;
	bool is_unmeasured;   /* a block that could not be counted; none is left in the end */
	const char *function; /* "[module+0x<vaddr>]" where it has no name */
	const char *linkage_name, *file; /* or NULL */
	uint32_t line;                   /* 0: unknown */
};

/* A source line that has code in a unit; how often that ran, at the most often run unit. */
struct coverage_line {
	const char *file;
	uint64_t count;
	uint32_t line;
};

/* The covered share of units of a kind, or of lines. */
struct coverage_share_counts {
	uint64_t covered_count, total_count;
};

struct coverage_module {
	const char *path;
	bool is_python; /* a source file; functions and lines are known already */
	uint8_t build_id[32];
	uint32_t build_id_size;
	struct coverage_code_range *units; /* functions, then blocks, by address */
	size_t unit_count, unit_capacity;
	struct coverage_line *lines; /* by file and line */
	size_t line_count, line_capacity;
	struct coverage_share_counts functions, blocks, code_lines;
	uint64_t unmeasured_block_count; /* blocks, which are not among those */
};

struct coverage {
	struct coverage_module *modules;
	size_t module_count, module_capacity;
	struct coverage_share_counts functions, blocks, code_lines;
	uint64_t unmeasured_block_count;
	struct string_pool *string_pool;
};

int coverage_compute(struct session *const *sessions, size_t count, struct coverage *ret,
		     struct problem *problem);
void coverage_deinit(struct coverage *coverage);

/* 66.67; 0 where there is nothing. */
static inline double coverage_share_to_percent(struct coverage_share_counts share)
{
	return share.total_count ? 100.0 * (double)share.covered_count / (double)share.total_count
				 : 0;
}

#endif

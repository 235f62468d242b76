/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Writing patches into a process whose threads run: all of them are stopped (ptrace), those that
 * stand inside a window are moved to the same instruction in its copy, the bytes are written, all
 * go on. Also the saved pc of signal frames on stacks and on alternate stacks is moved.
 *
 * The stop is short (milliseconds): everything that can be prepared is, before it.
 */
#ifndef KYMO_INJECT_COMMIT_H
#define KYMO_INJECT_COMMIT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/problem.h"
#include "kymo/plan.h"

struct patched_module {
	const struct plan_header *plan; /* whole plan in memory */
	const uint8_t *modes;           /* a byte per function: only those that are not OFF */
	uint64_t bias;
};

struct commit_result {
	uint32_t stop_count;      /* the last one; and those before it that were given up */
	uint64_t longest_stop_ns; /* the longest, from asking the first thread to the last one's
				   * release
				   */
	uint32_t threads, moved_thread_count;
	uint32_t sites;   /* that are now as they were to be */
	uint32_t skipped; /* that had other bytes, or held a thread that could not be moved */
};

/* Patches, or (undo) puts the original bytes back. What cannot be written is taken back as a whole.
 * 0 or negative errno. */
int commit_write_patches(pid_t pid, const struct patched_module *modules, size_t count,
			 struct commit_result *ret, struct problem *problem);
int commit_restore_code(pid_t pid, const struct patched_module *modules, size_t count,
			struct commit_result *ret, struct problem *problem);

#endif

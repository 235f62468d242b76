/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instrumenting a file instead of a process: a copy of an ELF executable or library in which the
 * patches of a plan are written and which carries its own arena, so that it is recorded wherever
 * libkymo-dl is found and runs as before when nobody records it (its trampoline is closed in the
 * file).
 *
 * What is added, behind everything that the file had:
 *
 *   .kymo.data               RW  data page of the arena
 *   .kymo.text               RX  trampoline pages (empty, the runtime's code comes there) and stubs
 *   .note.kymo.plan, .kymo.plan, .kymo.modes, and what had to make way or to grow (.dynstr, the
 * table of unwind entries, what followed the program headers)  R
 *
 * The program headers stay where they are and what follows them moves, if it is of a kind that can:
 * kernels before 5.18 tell the loader their address by their place in the file, and strip(1) wants
 * them in front. Only where that is not possible does the table move.
 *
 * The build-id stays, so that debug files are found; the plan in the file says what it was made of.
 */
#ifndef KYMO_BINARY_REWRITE_REWRITE_H
#define KYMO_BINARY_REWRITE_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/plan/plan.h"
#include "common/problem.h"

struct rewrite_options {
	const char *
		needed_library; /* library that the file is to need: a name or a path; NULL: none */
	const char
		*added_runpath; /* directory to look for it in, behind those that it names; NULL */
};

struct rewrite_result {
	uint32_t functions;      /* that are patched */
	uint64_t size;           /* of the new file */
	uint64_t trailing_bytes; /* bytes behind the ELF file (archives, signatures) that are not at
			      its end any more */
	bool has_moved_program_headers; /* the program headers: executables then need Linux 5.18 */
	bool has_merged_unwind_tables; /* unwinders find their way through stubs without help of the
					  runtime */
};

/* `modes` has a byte per function of the plan (enum plan_mode). The new file appears complete or
 * not at all, with the permissions of the old one, and its owner where that is allowed. `in` and
 * `out` may be the same. 0 or a negative errno: -ENOTSUP this kind of file cannot be rewritten,
 * -EEXIST it is rewritten already, -ESTALE the plan is of another file. */
int rewrite_elf_file(const char *in, const char *out, const struct plan *plan, const uint8_t *modes,
		     const struct rewrite_options *options, struct rewrite_result *ret,
		     struct problem *problem);

/* The same in memory: `*bytes` is a malloc'ed file image, which may be replaced by a larger one;
 * `name` is for messages. When it fails the image may be changed, and is still the caller's. */
int rewrite_elf_in_memory(const char *name, uint8_t **bytes, size_t *size, const struct plan *plan,
			  const uint8_t *modes, const struct rewrite_options *options,
			  struct rewrite_result *ret, struct problem *problem);

#endif

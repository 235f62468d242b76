/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Making, storing and reading patch plans (kymo/plan.h): for each function whether and how its
 * entry can be patched safely, and the code of its stub.
 *
 * A plan is made for all functions of a file at once and kept in a cache by build-id (or, without
 * one, by device, inode, size and times), so that the second run reads a few pages. Cache files are
 * written under another name and renamed. What is found there is believed only where the file and
 * all directories that lead to it are the user's own or root's, and where every byte is as it was
 * written; otherwise the plan is made again.
 */
#ifndef KYMO_BINARY_PLAN_PLAN_H
#define KYMO_BINARY_PLAN_PLAN_H

#include "binary/functions/functions.h"
#include "common/problem.h"
#include "kymo/plan.h"

/* Where the arena lies. A process may have something else there already: then the next place is
 * asked for. */
enum plan_arena_placement_kind {
	PLAN_ARENA_PLACEMENT_FIRST,  /* below programs, above libraries; no heap grows there */
	PLAN_ARENA_PLACEMENT_SECOND, /* other distances */
	PLAN_ARENA_PLACEMENT_THIRD,
	PLAN_ARENA_PLACEMENT_BEHIND_MODULE, /* right behind the module: for rewritten files */
	PLAN_ARENA_PLACEMENT_COUNT
};

struct plan_options {
	uint8_t arena_placement; /* enum plan_arena_placement_kind */
	bool has_loop_places;    /* also the heads of loops, as places that are counted */
	bool has_block_places;   /* also all blocks of code */
};

/* A plan in memory: mapped from the cache, or made. Read only. */
struct plan {
	const struct plan_header *header;
	size_t size;
	char path[4096]; /* of the file that it lies in; "" when it could not be stored */
	bool has_own_file, was_cached; /* no part of a rewritten file; was there already */
};

/* From decided functions to a finished plan. */
int plan_build(const struct elf_file *file, const struct functions *functions,
	       const struct plan_options *options, struct plan *ret, struct problem *problem);
/* From the cache in `directory` (NULL: none), else made and stored there. */
int plan_load_or_build(const struct elf_file *file, const char *directory,
		       const struct plan_options *options, struct plan *ret,
		       struct problem *problem);
/* A plan file, or an ELF file with a section .kymo.plan. -ENOEXEC: neither; -EBADMSG: damaged. */
int plan_open(const char *path, struct plan *ret, struct problem *problem);
/* The same, of the effective user or root alone: its bytes are to become code. */
int plan_open_if_owner_trusted(const char *path, struct plan *ret);
void plan_close(struct plan *plan);
/* Everything that a reader relies on holds: sizes, orders, offsets. */
bool plan_is_valid(const void *plan, size_t size);
/* As in the header; plan_open compares it. */
uint64_t plan_compute_checksum(const struct plan_header *plan);

static inline const struct plan_function *plan_get_functions(const struct plan *plan)
{
	return (const void *)((const char *)plan->header + plan->header->functions.offset);
}

static inline const struct plan_site *plan_get_sites(const struct plan *plan)
{
	return (const void *)((const char *)plan->header + plan->header->sites.offset);
}

static inline const struct plan_move *plan_get_moves(const struct plan *plan)
{
	return (const void *)((const char *)plan->header + plan->header->moves.offset);
}

/* "something jumps to an instruction that would be overwritten" and a word for lists ("target"). */
const char *plan_reason_to_text(enum plan_reason reason);
const char *plan_reason_to_word(enum plan_reason reason);

#endif

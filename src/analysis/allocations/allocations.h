/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocations in the session model: what each call site allocated, and what of it was never freed,
 * and the sums of each process over time. With a window of time, sums are those of the window, to
 * within a record (a tenth of a second where little is recorded), and live blocks and bytes are
 * those that were added in it.
 *
 * Life: session_open() fills `session_get_allocations(session)`, by process and then by bytes
 * allocated, the most first; frames of sites are there after session_symbolize(). Immutable after
 * that.
 */
#ifndef KYMO_ANALYSIS_ALLOCATIONS_ALLOCATIONS_H
#define KYMO_ANALYSIS_ALLOCATIONS_ALLOCATIONS_H

#include "analysis/session.h"

struct model_allocation_frame {
	const char *function, *file; /* file: NULL unknown */
	uint32_t line;               /* 0 unknown */
	const char *module;          /* name of the file, or NULL */
	bool inlined;                /* into the next frame */
	bool interpreted;            /* a function of an interpreter (Python) */
};

struct model_allocation_site {
	uint32_t process;
	/* As recorded: return addresses, innermost first. None: what no site is known of (blocks
	 * that the process could not keep count of; frees of blocks that it did not allocate, or
	 * not where it is seen). */
	const uint64_t *addresses;
	uint32_t address_count;
	uint64_t allocations, frees;
	uint64_t allocated_bytes, freed_bytes, peak_bytes;
	uint64_t temporary_allocations; /* freed before their thread allocated anything else */
	uint64_t bytes_at_process_peak;
	uint64_t first_ns; /* when it was met first; 0: unknown */
	struct model_allocation_frame *frames;
	uint32_t frame_count;
};

/* The sums of a process at a moment. */
struct model_allocation_point {
	uint64_t time_ns, allocations, frees, live_bytes;
};

#define MODEL_ALLOCATION_SIZE_CLASS_COUNT 41

struct model_process_allocations {
	bool has_totals;          /* false: made before totals were recorded */
	bool is_complete;         /* nothing is missing at the end */
	uint64_t last_ns;         /* time of the last record */
	uint64_t peak_bytes;      /* the most that was live at once */
	uint64_t peak_ns;         /* when; 0: unknown */
	bool has_holders_at_peak; /* bytes_at_process_peak of its sites are known */
	/* Allocations by size: class n has the sizes above 2^(n-1) up to 2^n bytes. */
	uint64_t size_classes[MODEL_ALLOCATION_SIZE_CLASS_COUNT];
	struct model_allocation_point *points; /* in order of time */
	size_t point_count;
};

struct model_allocations {
	struct model_allocation_site *sites;
	uint32_t count;
	size_t capacity; /* of `sites` */
};

#define ALLOCATIONS_DATA_KIND_NAME "allocations"

extern const struct session_data_kind_operations allocations_data_kind_operations;

static inline struct model_allocations *session_get_allocations(const struct session *session)
{
	return session_find_kind_data(session, ALLOCATIONS_DATA_KIND_NAME);
}

/* NULL: nothing is known of allocations of the process. */
const struct model_process_allocations *
session_get_process_allocations(const struct session *session, uint32_t process);

/* Sessions made by hand, as in tests, may have none. */
static inline uint32_t session_get_allocation_site_count(const struct session *session)
{
	return session_get_allocations(session) ? session_get_allocations(session)->count : 0;
}

/* Blocks and bytes that were never freed, or are still needed. */
static inline uint64_t allocation_site_count_live_blocks(const struct model_allocation_site *site)
{
	return site->address_count && site->allocations > site->frees
		       ? site->allocations - site->frees
		       : 0;
}

static inline uint64_t allocation_site_get_live_bytes(const struct model_allocation_site *site)
{
	return site->address_count && site->allocated_bytes > site->freed_bytes
		       ? site->allocated_bytes - site->freed_bytes
		       : 0;
}

#endif

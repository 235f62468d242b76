/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocations in the session model: what each call site allocated, and what of it was never freed.
 *
 * Life: session_open() fills `session->allocations`, by process and then by bytes allocated, the
 * most first; frames of sites are there after session_symbolize(). Immutable after that.
 */
#ifndef KYMO_ANALYSIS_ALLOCATIONS_H
#define KYMO_ANALYSIS_ALLOCATIONS_H

#include "analysis/session.h"

struct model_site_frame {
	const char *function, *file; /* file: NULL unknown */
	uint32_t line;               /* 0 unknown */
	const char *module;          /* name of the file, or NULL */
	bool inlined;                /* into the next frame */
};

struct model_site {
	uint32_t process;
	/* As recorded: return addresses, innermost first. None: what no site is known of (blocks
	 * that the process could not keep count of; frees of blocks that it did not allocate, or
	 * not where it is seen). */
	const uint64_t *addresses;
	uint32_t address_count;
	uint64_t allocations, frees;
	uint64_t allocated_bytes, freed_bytes, peak_bytes;
	struct model_site_frame *frames;
	uint32_t frame_count;
};

struct model_allocations {
	struct model_site *sites;
	uint32_t count;
	size_t capacity; /* of `sites` */
};

/* Sessions made by hand, as in tests, may have none. */
static inline uint32_t session_site_count(const struct session *session)
{
	return session->allocations ? session->allocations->count : 0;
}

/* Blocks and bytes that were never freed, or are still needed. */
static inline uint64_t site_live_blocks(const struct model_site *site)
{
	return site->address_count && site->allocations > site->frees
		       ? site->allocations - site->frees
		       : 0;
}

static inline uint64_t site_live_bytes(const struct model_site *site)
{
	return site->address_count && site->allocated_bytes > site->freed_bytes
		       ? site->allocated_bytes - site->freed_bytes
		       : 0;
}

#endif

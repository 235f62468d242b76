/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What outputs share about allocations.
 */
#ifndef KYMO_OUTPUT_JSON_MEMORY_H
#define KYMO_OUTPUT_JSON_MEMORY_H

#include "analysis/allocations/allocations.h"
#include "output/output.h"

/* The sums of one process. */
struct memory_process_sums {
	uint64_t allocations, frees, allocated_bytes, freed_bytes;
	uint64_t live_block_count, live_bytes;
	uint64_t temporary_allocations; /* freed before their thread allocated anything else */
	uint64_t unknown_free_count;    /* of blocks that were not seen being allocated */
	uint64_t uncounted_allocations; /* allocations that there was no room to keep count of */
	uint32_t first_site_index, site_count;
};

void memory_compute_process_sums(const struct session *session, uint32_t process,
				 struct memory_process_sums *ret);
/* "function (file:line)" of the frame that asked for memory, past the allocators of C++ and libc's
 * functions that it called to get it. */
void memory_format_site_label(char *buffer, size_t size, const struct model_allocation_site *site);

/* The tables of profile.txt; nothing where no allocations were recorded. 0 or -ENOMEM. */
int memory_write_text_tables(struct session *session, const struct output_options *options,
			     FILE *stream);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What outputs share about allocations.
 */
#ifndef KYMO_OUTPUT_MEMORY_H
#define KYMO_OUTPUT_MEMORY_H

#include "analysis/allocations.h"
#include "output/output.h"

/* Of one process. */
struct memory_sums {
	uint64_t allocations, frees, allocated_bytes, freed_bytes;
	uint64_t live_blocks, live_bytes;
	uint64_t unknown_frees; /* of blocks that were not seen being allocated */
	uint64_t uncounted;     /* allocations that there was no room to keep count of */
	uint32_t first_site, site_count;
};

void memory_sum(const struct session *session, uint32_t process, struct memory_sums *ret);
/* "function (file:line)" of the frame that asked for memory, past the allocators of C++ that it
 * called to get it. */
void memory_label(char *buffer, size_t size, const struct model_site *site);

/* The tables of profile.txt; nothing where no allocations were recorded. 0 or -ENOMEM. */
int memory_text_write(struct session *session, const struct output_options *options, FILE *stream);

#endif

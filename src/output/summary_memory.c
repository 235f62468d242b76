/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocations in the summary: sites of all processes that allocated the most bytes.
 */
#include <errno.h>
#include <stdlib.h>

#include "output/format.h"
#include "output/memory.h"
#include "output/summary.h"

#define NAME_WIDTH 50

static int by_bytes(const void *left, const void *right)
{
	const struct model_site *a = *(const struct model_site *const *)left;
	const struct model_site *b = *(const struct model_site *const *)right;

	if (a->allocated_bytes != b->allocated_bytes)
		return a->allocated_bytes > b->allocated_bytes ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void write_sums(const struct summary *summary)
{
	const struct session *session = summary->session;
	uint64_t live_blocks = 0, live_bytes = 0, unknown = 0, uncounted = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		struct memory_sums sums;

		memory_sum(session, i, &sums);
		live_blocks += sums.live_blocks;
		live_bytes += sums.live_bytes;
		unknown += sums.unknown_frees;
		uncounted += sums.uncounted;
	}
	summary_line(summary, "%s in %s blocks not freed at the end (profile.txt says where)",
		     quantity_bytes(live_bytes).text, quantity_count(live_blocks).text);
	if (unknown)
		summary_line(summary,
			     "%s frees of blocks that were not seen being allocated (by libc, or "
			     "before)",
			     quantity_count(unknown).text);
	if (uncounted)
		summary_warning(summary, "%s allocations could not be kept count of",
				quantity_count(uncounted).text);
}

int summary_memory(const struct summary *summary)
{
	const struct model_allocations *allocations = summary->session->allocations;
	const struct model_site **sites;

	if (session_site_count(summary->session) == 0)
		return 0;
	sites = calloc(allocations->count, sizeof(void *));
	if (!sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < allocations->count; i++)
		sites[i] = &allocations->sites[i];
	qsort(sites, allocations->count, sizeof(void *), by_bytes);
	summary_heading(summary, "Most bytes allocated");
	fprintf(summary->stream, "  %10s %13s %10s %13s  %s\n", "bytes", "blocks", "peak",
		"not freed", "where");
	for (uint32_t i = 0; i < allocations->count && i < summary->top; i++) {
		char label[512];

		if (sites[i]->address_count == 0)
			continue;
		memory_label(label, sizeof(label), sites[i]);
		fprintf(summary->stream, "  %10s %13s %10s %13s  ",
			quantity_bytes(sites[i]->allocated_bytes).text,
			quantity_count(sites[i]->allocations).text,
			quantity_bytes(sites[i]->peak_bytes).text,
			quantity_count(site_live_blocks(sites[i])).text);
		format_limited(summary->stream, label, NAME_WIDTH);
		fputc('\n', summary->stream);
	}
	write_sums(summary);
	free(sites);
	return 0;
}

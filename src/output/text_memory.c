/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocations in profile.txt: the sites that allocated most, and those whose blocks were not all
 * freed, by process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "output/format.h"
#include "output/memory.h"

#define TOP_ROWS    50
#define LABEL_WIDTH 60

static void write_columns(FILE *stream)
{
	fputs("  ", stream);
	format_fitted(stream, "LABEL", LABEL_WIDTH);
	fprintf(stream, " %12s %12s %16s %16s %12s %16s\n", "ALLOCATIONS", "FREES", "BYTES",
		"PEAK BYTES", "NOT FREED", "BYTES NOT FREED");
}

static void write_callers(FILE *stream, const struct model_site *site)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		const struct model_site_frame *frame = &site->frames[i];

		fprintf(stream, "      %s ", i ? "by" : "in");
		format_limited(stream, frame->function, LABEL_WIDTH * 2);
		if (frame->file && frame->line)
			fprintf(stream, " %s:%u", frame->file, frame->line);
		else if (frame->module)
			fprintf(stream, " in %s", frame->module);
		fputc('\n', stream);
	}
}

static void write_site(FILE *stream, const struct model_site *site)
{
	char label[512];

	memory_label(label, sizeof(label), site);
	fputs("  ", stream);
	format_fitted(stream, label, LABEL_WIDTH);
	fprintf(stream,
		" %12" PRIu64 " %12" PRIu64 " %16" PRIu64 " %16" PRIu64 " %12" PRIu64 " %16" PRIu64
		"\n",
		site->allocations, site->frees, site->allocated_bytes, site->peak_bytes,
		site_live_blocks(site), site_live_bytes(site));
}

static int by_live_bytes(const void *left, const void *right)
{
	const struct model_site *a = *(const struct model_site *const *)left;
	const struct model_site *b = *(const struct model_site *const *)right;
	uint64_t one = site_live_bytes(a), other = site_live_bytes(b);

	if (one != other)
		return one > other ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int write_leaks(const struct session *session, const struct memory_sums *sums, size_t top,
		       FILE *stream)
{
	const struct model_site **sites = calloc((size_t)sums->site_count + 1, sizeof(void *));
	uint32_t count = 0;

	if (!sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->site_count; i++) {
		const struct model_site *site = &session->allocations->sites[sums->first_site + i];

		if (site_live_blocks(site))
			sites[count++] = site;
	}
	if (count > 1)
		qsort(sites, count, sizeof(void *), by_live_bytes);
	if (count)
		fprintf(stream, "\n  not freed when the process ended, or when last seen:\n");
	for (uint32_t i = 0; i < count && i < top; i++) {
		write_site(stream, sites[i]);
		write_callers(stream, sites[i]);
	}
	free(sites);
	return 0;
}

static int write_process(struct session *session, uint32_t index, size_t top, FILE *stream)
{
	const struct model_process *process = &session->processes[index];
	struct memory_sums sums;
	uint32_t shown = 0;

	memory_sum(session, index, &sums);
	if (sums.site_count == 0)
		return 0;
	fprintf(stream,
		"%s [%u]: %" PRIu64 " allocations of %" PRIu64 " bytes at %u sites, %" PRIu64
		" frees; not freed: %" PRIu64 " blocks, %" PRIu64 " bytes\n",
		process->name, process->pid, sums.allocations, sums.allocated_bytes,
		sums.site_count, sums.frees, sums.live_blocks, sums.live_bytes);
	if (sums.unknown_frees)
		fprintf(stream,
			"  %" PRIu64
			" frees of blocks that were not seen being allocated (by libc, or "
			"before)\n",
			sums.unknown_frees);
	write_columns(stream);
	for (uint32_t i = 0; i < sums.site_count && shown < top; i++) {
		const struct model_site *site = &session->allocations->sites[sums.first_site + i];

		if (site->address_count == 0)
			continue;
		write_site(stream, site);
		shown++;
	}
	return write_leaks(session, &sums, top, stream);
}

int memory_text_write(struct session *session, const struct output_options *options, FILE *stream)
{
	size_t top = options->top ? options->top : TOP_ROWS;
	int result = 0;

	if (session_site_count(session) == 0)
		return 0;
	fprintf(stream,
		"\nALLOCATIONS\nBy site, the most bytes first; all of them with their stacks are "
		"in memory.json.\n\n");
	for (uint32_t i = 0; result == 0 && i < session->process_count; i++)
		result = write_process(session, i, top, stream);
	return result;
}

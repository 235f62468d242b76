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
#include "output/json/memory.h"

#define ALLOCATION_SITE_ROWS_DEFAULT 50
#define LABEL_COLUMNS                60

static void write_column_titles(FILE *stream)
{
	fputs("  ", stream);
	format_write_padded_to_width(stream, "LABEL", LABEL_COLUMNS);
	fprintf(stream, " %12s %12s %16s %16s %12s %16s\n", "ALLOCATIONS", "FREES", "BYTES",
		"PEAK BYTES", "NOT FREED", "BYTES NOT FREED");
}

static void write_allocation_callers(FILE *stream, const struct model_allocation_site *site)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		const struct model_allocation_frame *frame = &site->frames[i];

		fprintf(stream, "      %s ", i ? "by" : "in");
		format_write_cut_to_width(stream, frame->function, LABEL_COLUMNS * 2);
		if (frame->file && frame->line)
			fprintf(stream, " %s:%u", frame->file, frame->line);
		else if (frame->module)
			fprintf(stream, " in %s", frame->module);
		fputc('\n', stream);
	}
}

static void write_allocation_site(FILE *stream, const struct model_allocation_site *site)
{
	char label[512];

	memory_format_site_label(label, sizeof(label), site);
	fputs("  ", stream);
	format_write_padded_to_width(stream, label, LABEL_COLUMNS);
	fprintf(stream,
		" %12" PRIu64 " %12" PRIu64 " %16" PRIu64 " %16" PRIu64 " %12" PRIu64 " %16" PRIu64
		"\n",
		site->allocations, site->frees, site->allocated_bytes, site->peak_bytes,
		allocation_site_count_live_blocks(site), allocation_site_get_live_bytes(site));
}

static int compare_sites_by_live_bytes(const void *left, const void *right)
{
	const struct model_allocation_site *a = *(const struct model_allocation_site *const *)left;
	const struct model_allocation_site *b = *(const struct model_allocation_site *const *)right;
	uint64_t one = allocation_site_get_live_bytes(a), other = allocation_site_get_live_bytes(b);

	if (one != other)
		return one > other ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int write_leak_table(const struct session *session, const struct memory_process_sums *sums,
			    size_t top, FILE *stream)
{
	const struct model_allocation_site **sites =
		calloc((size_t)sums->site_count + 1, sizeof(void *));
	uint32_t count = 0;

	if (!sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->site_count; i++) {
		const struct model_allocation_site *site =
			&session_get_allocations(session)->sites[sums->first_site_index + i];

		if (allocation_site_count_live_blocks(site))
			sites[count++] = site;
	}
	if (count > 1)
		qsort(sites, count, sizeof(void *), compare_sites_by_live_bytes);
	if (count)
		fprintf(stream, "\n  not freed when the process ended, or when last seen:\n");
	for (uint32_t i = 0; i < count && i < top; i++) {
		write_allocation_site(stream, sites[i]);
		write_allocation_callers(stream, sites[i]);
	}
	free(sites);
	return 0;
}

static int compare_sites_by_bytes_at_peak(const void *left, const void *right)
{
	const struct model_allocation_site *a = *(const struct model_allocation_site *const *)left;
	const struct model_allocation_site *b = *(const struct model_allocation_site *const *)right;

	if (a->bytes_at_process_peak != b->bytes_at_process_peak)
		return a->bytes_at_process_peak > b->bytes_at_process_peak ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Who held what when the process had the most. */
static int write_peak_table(const struct session *session, uint32_t process,
			    const struct memory_process_sums *sums, size_t top, FILE *stream)
{
	const struct model_process_allocations *allocations =
		session_get_process_allocations(session, process);
	const struct model_allocation_site **sites;

	if (!allocations || !allocations->has_holders_at_peak)
		return 0;
	sites = calloc((size_t)sums->site_count + 1, sizeof(void *));
	if (!sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->site_count; i++)
		sites[i] = &session_get_allocations(session)->sites[sums->first_site_index + i];
	qsort(sites, sums->site_count, sizeof(void *), compare_sites_by_bytes_at_peak);
	fprintf(stream, "\n  %" PRIu64 " bytes were allocated at the process's peak, by:\n",
		allocations->peak_bytes);
	for (uint32_t i = 0; i < sums->site_count && i < top && sites[i]->bytes_at_process_peak;
	     i++) {
		char label[512];

		memory_format_site_label(label, sizeof(label), sites[i]);
		fputs("  ", stream);
		format_write_padded_to_width(stream, label, LABEL_COLUMNS);
		fprintf(stream, " %16" PRIu64 "\n", sites[i]->bytes_at_process_peak);
	}
	free(sites);
	return 0;
}

static int write_process_allocations(struct session *session, uint32_t index, size_t top,
				     FILE *stream)
{
	const struct model_process *process = &session->processes[index];
	struct memory_process_sums sums;
	uint32_t shown = 0;
	int result;

	memory_compute_process_sums(session, index, &sums);
	if (sums.site_count == 0)
		return 0;
	fprintf(stream,
		"%s [%u]: %" PRIu64 " allocations of %" PRIu64 " bytes at %u sites, %" PRIu64
		" frees; not freed: %" PRIu64 " blocks, %" PRIu64 " bytes\n",
		process->name, process->pid, sums.allocations, sums.allocated_bytes,
		sums.site_count, sums.frees, sums.live_block_count, sums.live_bytes);
	if (sums.unknown_free_count)
		fprintf(stream,
			"  %" PRIu64
			" frees of blocks whose allocation was not seen (made earlier)\n",
			sums.unknown_free_count);
	write_column_titles(stream);
	for (uint32_t i = 0; i < sums.site_count && shown < top; i++) {
		const struct model_allocation_site *site =
			&session_get_allocations(session)->sites[sums.first_site_index + i];

		if (site->address_count == 0)
			continue;
		write_allocation_site(stream, site);
		shown++;
	}
	result = write_peak_table(session, index, &sums, top, stream);
	return result < 0 ? result : write_leak_table(session, &sums, top, stream);
}

int memory_write_text_tables(struct session *session, const struct output_options *options,
			     FILE *stream)
{
	size_t top = options->top ? options->top : ALLOCATION_SITE_ROWS_DEFAULT;
	int result = 0;

	if (session_get_allocation_site_count(session) == 0)
		return 0;
	fprintf(stream,
		"\nALLOCATIONS\nBy site, the most bytes first; all of them with their stacks are "
		"in memory.json.\n\n");
	for (uint32_t i = 0; result == 0 && i < session->process_count; i++)
		result = write_process_allocations(session, i, top, stream);
	return result;
}

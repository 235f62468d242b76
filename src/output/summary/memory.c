/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocations in the summary: sites of all processes that allocated the most bytes.
 */
#include <errno.h>
#include <stdlib.h>

#include "output/format.h"
#include "output/json/memory.h"
#include "output/summary/private.h"

static int compare_sites_by_bytes(const void *left, const void *right)
{
	const struct model_allocation_site *a = *(const struct model_allocation_site *const *)left;
	const struct model_allocation_site *b = *(const struct model_allocation_site *const *)right;

	if (a->allocated_bytes != b->allocated_bytes)
		return a->allocated_bytes > b->allocated_bytes ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Peaks of several processes need not be at one time, so they are not added up. */
static void write_peaks_and_missing_ends(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	const struct model_process_allocations *highest = NULL;
	uint32_t of = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process_allocations *process =
			session_get_process_allocations(session, i);

		if (!process || !process->has_totals)
			continue;
		if (!process->is_complete)
			summary_write_warning(
				summary,
				"allocations of %s [%u] are missing after %s: it still runs, or it "
				"was "
				"killed together with kymo's helper",
				session->processes[i].name, session->processes[i].pid,
				quantity_from_ns(process->last_ns - session->start_ns).text);
		if (!highest || process->peak_bytes > highest->peak_bytes) {
			highest = process;
			of = i;
		}
	}
	if (highest)
		summary_write_line(
			summary, "%s [%u] had %s allocated at its peak%s%s",
			session->processes[of].name, session->processes[of].pid,
			quantity_from_bytes(highest->peak_bytes).text,
			highest->peak_ns > session->start_ns ? ", after " : "",
			highest->peak_ns > session->start_ns
				? quantity_from_ns(highest->peak_ns - session->start_ns).text
				: "");
}

static void write_not_freed_sums(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	uint64_t live_blocks = 0, live_bytes = 0, unknown = 0, uncounted = 0, temporary = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		struct memory_process_sums sums;

		memory_compute_process_sums(session, i, &sums);
		live_blocks += sums.live_block_count;
		live_bytes += sums.live_bytes;
		unknown += sums.unknown_free_count;
		temporary += sums.temporary_allocations;
		uncounted += sums.uncounted_allocations;
	}
	summary_write_line(
		summary, "%s in %s blocks were not freed (profile.txt lists the call sites)",
		quantity_from_bytes(live_bytes).text, quantity_from_count(live_blocks).text);
	if (temporary)
		summary_write_line(summary,
				   "%s blocks were freed before their thread allocated another one",
				   quantity_from_count(temporary).text);
	if (unknown)
		summary_write_line(
			summary,
			"%s frees of blocks whose allocation kymo did not see (made earlier)",
			quantity_from_count(unknown).text);
	if (uncounted)
		summary_write_warning(summary, "%s allocations could not be counted",
				      quantity_from_count(uncounted).text);
}

int summary_write_memory(const struct summary_writer *summary)
{
	const struct model_allocations *allocations = session_get_allocations(summary->session);
	const struct model_allocation_site **sites;

	if (session_get_allocation_site_count(summary->session) == 0)
		return 0;
	sites = calloc(allocations->count, sizeof(void *));
	if (!sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < allocations->count; i++)
		sites[i] = &allocations->sites[i];
	qsort(sites, allocations->count, sizeof(void *), compare_sites_by_bytes);
	summary_write_heading(summary, "Most bytes allocated");
	summary_write_row(
		summary,
		(const struct summary_cell[]){
			{"bytes", 12, 0}, {"blocks", 14, 1}, {"peak", 11, 2}, {"not freed", 14, 3}},
		4, "where");
	for (uint32_t i = 0; i < allocations->count && i < summary->top; i++) {
		char label[512];

		if (sites[i]->address_count == 0)
			continue;
		memory_format_site_label(label, sizeof(label), sites[i]);
		summary_write_row(
			summary,
			(const struct summary_cell[]){
				{quantity_from_bytes(sites[i]->allocated_bytes).text, 12, 0},
				{quantity_from_count(sites[i]->allocations).text, 14, 1},
				{quantity_from_bytes(sites[i]->peak_bytes).text, 11, 2},
				{quantity_from_count(allocation_site_count_live_blocks(sites[i]))
					 .text,
				 14, 3}},
			4, label);
	}
	write_peaks_and_missing_ends(summary);
	write_not_freed_sums(summary);
	free(sites);
	return 0;
}

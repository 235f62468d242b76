/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary's part about ranks together: who is late and what that costs, what was skipped or
 * called otherwise, and the slowest links.
 */
#include "output/nccl/text_join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/pairs.h"
#include "output/nccl/nccl.h"

static const char *plural_suffix(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* How many rows to show of `count`. */
static size_t get_shown_row_count(size_t count, unsigned top)
{
	return top && count > top ? top : count;
}

static void write_omitted_row_count(FILE *stream, size_t count, size_t rows)
{
	if (rows < count)
		fprintf(stream, "    … and %zu more (--top 0 shows all)\n", count - rows);
}

/* ---- transfers ---- */

static void write_collective_transfer_table(const struct nccl_data *data,
					    const struct nccl_joined_collectives *joined,
					    unsigned top, FILE *stream)
{
	struct nccl_collective_transfer_sums sum;
	size_t place = 0, rows = 0;

	fprintf(stream, "  Transfers without waiting\n    %-18s %-13s %10s %9s %8s %8s %12s\n",
		"communicator", "function", "collectives", "mean", "algbw", "busbw",
		"longest wait");
	while (nccl_get_next_function_transfer_sums(data, joined, &place, &sum)) {
		if (!sum.collectives || (top && rows == top))
			continue;
		rows++;
		fputs("    ", stream);
		format_write_padded_to_width(
			stream, nccl_format_communicator_label(data, sum.communicator).text, 18);
		fputc(' ', stream);
		format_write_padded_to_width(stream, data->functions[sum.function].name, 13);
		fprintf(stream, " %11s %9s %8.4g %8.4g %12s\n",
			quantity_from_count(sum.collectives).text,
			quantity_from_ns(sum.ns / sum.collectives).text,
			nccl_compute_algorithm_bandwidth(sum.bytes, sum.ns),
			nccl_compute_bus_bandwidth(sum.bus_bytes, sum.ns),
			quantity_from_ns(sum.longest_wait_ns).text);
	}
}

/* ---- late ranks ---- */

/* The waiting that one rank of the job caused, over all of its communicators. */
struct straggler_table_row {
	uint32_t job_rank;
	struct nccl_rank_wait_sums sum;
};

static int compare_stragglers_by_wait(const void *left, const void *right)
{
	const struct straggler_table_row *a = left, *b = right;

	if (a->sum.caused_wait_ns != b->sum.caused_wait_ns)
		return a->sum.caused_wait_ns > b->sum.caused_wait_ns ? -1 : 1;
	return a->job_rank < b->job_rank ? -1 : a->job_rank > b->job_rank;
}

static struct straggler_table_row *
sort_ranks_by_caused_wait(const struct nccl_data *data,
			  const struct nccl_joined_collectives *joined)
{
	struct straggler_table_row *stragglers =
		calloc((size_t)data->job_rank_count + 1, sizeof(*stragglers));

	for (uint32_t i = 0; stragglers && i < data->job_rank_count; i++) {
		stragglers[i].job_rank = i;
		stragglers[i].sum = nccl_sum_waits_of_job_rank(data, joined, i);
	}
	if (stragglers && data->job_rank_count > 1)
		qsort(stragglers, data->job_rank_count, sizeof(*stragglers),
		      compare_stragglers_by_wait);
	return stragglers;
}

/* "3"; "1 of tp0" where the job's is not known. */
static struct nccl_label_text format_rank_cell(const struct nccl_data *data, uint32_t job_rank)
{
	struct nccl_label_text label = nccl_format_job_rank_label(data, job_rank);

	if (!strncmp(label.text, "rank ", 5))
		memmove(label.text, label.text + 5, strlen(label.text + 5) + 1);
	return label;
}

static void write_late_rank_row(const struct nccl_data *data,
				const struct straggler_table_row *straggler, FILE *stream)
{
	const struct nccl_job_rank *rank = &data->job_ranks[straggler->job_rank];
	const struct nccl_file_header *header = &data->processes[rank->process].file.header;

	fprintf(stream, "    %6s ", format_rank_cell(data, straggler->job_rank).text);
	format_write_padded_to_width(stream, header->host, 20);
	fprintf(stream, " %10u %10s %12s %12s %9s %8s\n", header->pid,
		quantity_from_count(straggler->sum.last + straggler->sum.last_transfers).text,
		quantity_from_ns(straggler->sum.caused_wait_ns).text,
		quantity_from_ns(straggler->sum.waited_ns).text,
		quantity_from_share(straggler->sum.waited_ns, straggler->sum.duration_ns).text,
		quantity_from_count(straggler->sum.left_out).text);
}

static int write_late_rank_table(const struct nccl_data *data,
				 const struct nccl_joined_collectives *joined, unsigned top,
				 FILE *stream)
{
	struct straggler_table_row *stragglers = sort_ranks_by_caused_wait(data, joined);
	size_t rows = get_shown_row_count(data->job_rank_count, top);

	if (!stragglers)
		return -ENOMEM;
	fprintf(stream, "  Late ranks\n    %6s %-20s %10s %10s %12s %12s %9s %8s\n", "rank", "host",
		"pid", "last in", "others wait", "own waiting", "of time", "skipped");
	for (size_t i = 0; i < rows; i++)
		write_late_rank_row(data, &stragglers[i], stream);
	write_omitted_row_count(stream, data->job_rank_count, rows);
	free(stragglers);
	return 0;
}

/* ---- the collectives that cost the most ---- */

static uint64_t get_collective_wait_ns(const struct nccl_collective *collective)
{
	return collective->is_timed
		       ? collective->longest_duration_ns - collective->shortest_duration_ns
		       : 0;
}

static int compare_collectives_by_wait(const void *left, const void *right, void *context)
{
	const struct nccl_collective *collectives = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint64_t first = get_collective_wait_ns(&collectives[a]),
		 second = get_collective_wait_ns(&collectives[b]);

	if (first != second)
		return first > second ? -1 : 1;
	return a < b ? -1 : a > b;
}

static struct nccl_label_text format_collective_label(const struct nccl_data *data,
						      const struct nccl_collective *collective)
{
	struct nccl_label_text label;

	snprintf(label.text, sizeof(label.text), "%.30s #%" PRIu64 " of %.40s",
		 data->functions[collective->function].name, collective->sequence,
		 nccl_format_communicator_label(data, collective->communicator).text);
	return label;
}

static void write_collective_wait(const struct nccl_data *data,
				  const struct nccl_collective *collective, FILE *stream)
{
	uint32_t late;
	enum nccl_lateness_basis how = nccl_collective_find_late_rank(collective, &late);
	char who[240] = "the late rank is not known";

	if (how == NCCL_LATENESS_BY_CLOCK)
		snprintf(who, sizeof(who), "%s entered last, %s after the first (± %s)",
			 nccl_format_rank_label(data, late).text,
			 quantity_from_ns(collective->last_begin_ns - collective->first_begin_ns)
				 .text,
			 quantity_from_ns(collective->begin_end_error_ns).text);
	else if (how == NCCL_LATENESS_BY_DURATION)
		snprintf(who, sizeof(who), "%s entered last (its time in it is the shortest)",
			 nccl_format_rank_label(data, late).text);
	nccl_print_wrapped_line(stream, 4, "%s: transfer %s, waiting up to %s; %s",
				format_collective_label(data, collective).text,
				quantity_from_ns(collective->shortest_duration_ns).text,
				quantity_from_ns(get_collective_wait_ns(collective)).text, who);
}

static int write_longest_waits(const struct nccl_data *data,
			       const struct nccl_joined_collectives *joined, unsigned top,
			       FILE *stream)
{
	uint32_t *order = calloc(joined->count + 1, sizeof(*order));
	size_t count = 0, rows;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < joined->count; i++) {
		if (get_collective_wait_ns(&joined->collectives[i]))
			order[count++] = i;
	}
	qsort_r(order, count, sizeof(*order), compare_collectives_by_wait, joined->collectives);
	rows = get_shown_row_count(count, top);
	if (rows)
		fputs("  Longest waits\n", stream);
	for (size_t i = 0; i < rows; i++)
		write_collective_wait(data, &joined->collectives[order[i]], stream);
	write_omitted_row_count(stream, count, rows);
	free(order);
	return 0;
}

/* ---- skipped or mismatched ---- */

static void write_argument_difference(const struct nccl_data *data,
				      const struct nccl_rank_function_sums *sum,
				      const struct nccl_differing_argument_counts *difference,
				      FILE *stream)
{
	const struct nccl_communicator_rank *member = &data->members[sum->member];
	const char *function = data->functions[sum->function].name;
	int32_t other = data->members[difference->compared_to_member].rank;
	struct nccl_label_text communicator =
		nccl_format_communicator_label(data, member->communicator);

	if (nccl_differing_calls_suggest_skipped_call(difference))
		nccl_print_wrapped_line(
			stream, 4,
			"SKIPPED: from %s #%" PRIu64
			" of %s on, the calls of rank %d are those that rank %d makes one later: "
			"it has left one out",
			function, difference->first_sequence, communicator.text, member->rank,
			other);
	else
		nccl_print_wrapped_line(
			stream, 4,
			"MISMATCH: rank %d calls %s of %s with another size, type or root than "
			"rank %d: %s time%s, first #%" PRIu64,
			member->rank, function, communicator.text, other,
			quantity_from_count(difference->count).text,
			plural_suffix(difference->count), difference->first_sequence);
}

static void format_missing_ranks(const struct nccl_data *data,
				 const struct nccl_mismatched_collective_info *problem,
				 const struct nccl_collective *collective, char *ret, size_t size)
{
	const struct nccl_communicator *communicator =
		&data->communicators[collective->communicator];
	size_t used = 0;

	*ret = '\0';
	for (uint32_t i = 0; i < communicator->member_count && used + 16 < size; i++) {
		if (!(problem->present[i / 64] >> (i % 64) & 1))
			used += (size_t)snprintf(ret + used, size - used, "%s%d", used ? ", " : "",
						 data->members[communicator->members[i]].rank);
	}
	if (used + 16 >= size)
		snprintf(ret + used, size - used, ", …");
}

static bool
problem_has_ranks_to_report_missing(const struct nccl_joined_collectives *joined,
				    const struct nccl_mismatched_collective_info *problem)
{
	return problem->skipped_rank_count ||
	       (problem->not_reached_rank_count &&
		!joined->collectives[problem->collective].in_flight_rank_count);
}

static void write_missing_ranks_of_collective(const struct nccl_data *data,
					      const struct nccl_joined_collectives *joined,
					      const struct nccl_mismatched_collective_info *problem,
					      FILE *stream)
{
	const struct nccl_collective *collective = &joined->collectives[problem->collective];
	char ranks[256];

	format_missing_ranks(data, problem, collective, ranks, sizeof(ranks));
	nccl_print_wrapped_line(stream, 4,
				problem->skipped_rank_count
					? "%s: NCCL did not report it on rank %s"
					: "%s: not reached by rank %s",
				format_collective_label(data, collective).text, ranks);
}

static void write_skipped_or_mismatched_calls(const struct nccl_data *data,
					      const struct nccl_joined_collectives *joined,
					      unsigned top, FILE *stream)
{
	size_t count = data->differing_call_count, written = 0;

	for (uint32_t i = 0; i < data->rank_function_sum_count; i++)
		count += joined->argument_differences_by_sum[i].count != 0;
	for (size_t i = 0; i < joined->problem_count; i++)
		count += problem_has_ranks_to_report_missing(joined, &joined->problems[i]);
	if (count)
		fputs("  Skipped or mismatched\n", stream);
	written = nccl_write_differing_calls(data, 4, get_shown_row_count(count, top), stream);
	for (uint32_t i = 0;
	     i < data->rank_function_sum_count && written < get_shown_row_count(count, top); i++) {
		if (!joined->argument_differences_by_sum[i].count)
			continue;
		write_argument_difference(data, &data->rank_function_sums[i],
					  &joined->argument_differences_by_sum[i], stream);
		written++;
	}
	for (size_t i = 0; i < joined->problem_count && written < get_shown_row_count(count, top);
	     i++) {
		if (!problem_has_ranks_to_report_missing(joined, &joined->problems[i]))
			continue;
		write_missing_ranks_of_collective(data, joined, &joined->problems[i], stream);
		written++;
	}
	if (count)
		write_omitted_row_count(stream, count + joined->unkept_problem_count, written);
}

/* ---- links ---- */

static int compare_links_by_bandwidth(const void *left, const void *right)
{
	const struct nccl_rank_to_peer_link *const *a = left, *const *b = right;
	double first = nccl_compute_link_bandwidth(*a), second = nccl_compute_link_bandwidth(*b);

	if (first < second)
		return -1;
	return first > second;
}

/* What of the time is not transfer. */
static void format_link_waiting(const struct nccl_data *data,
				const struct nccl_rank_to_peer_link *link, char *ret, size_t size)
{
	uint32_t communicator = data->members[link->member].communicator;

	*ret = '\0';
	if (link->network_or_peer_wait_ns)
		snprintf(ret, size, ", %s of it waiting for the network",
			 quantity_from_share(link->network_or_peer_wait_ns, link->ns).text);
	else if (link->sender_wait_ns > link->receiver_wait_ns)
		snprintf(ret, size, "; before that the sender waited %s for %s",
			 quantity_from_ns(link->sender_wait_ns).text,
			 nccl_format_peer_label(data, communicator, link->peer).text);
	else if (link->receiver_wait_ns)
		snprintf(ret, size, "; before that the receiver waited %s for %s",
			 quantity_from_ns(link->receiver_wait_ns).text,
			 nccl_format_rank_label(data, link->member).text);
	else if (!link->is_over_network && !link->paired_transfer_count)
		snprintf(ret, size, "; its other side has no records, so waiting is part of it");
}

static void write_link_row(const struct nccl_data *data, const struct nccl_rank_to_peer_link *link,
			   double median, FILE *stream)
{
	const struct nccl_communicator_rank *member = &data->members[link->member];
	char waiting[256];

	format_link_waiting(data, link, waiting, sizeof(waiting));
	nccl_print_wrapped_line(
		stream, 4,
		"rank %d %s rank %d of %s: %s%.3g GB/s, %.0f %% of the median; %s transfers of "
		"%s, slowest %s%s",
		member->rank, link->sends ? "to" : "from", link->peer,
		nccl_format_communicator_label(data, member->communicator).text,
		link->is_over_network || link->paired_transfer_count ? "" : "at least ",
		nccl_compute_link_bandwidth(link),
		median > 0 ? 100 * nccl_compute_link_bandwidth(link) / median : 0,
		quantity_from_count(link->transfer_count).text,
		quantity_from_bytes(link->bytes / link->transfer_count).text,
		quantity_from_ns(link->slowest_transfer_ns).text, waiting);
}

static int write_link_table(const struct nccl_data *data,
			    const struct nccl_joined_collectives *joined, bool network,
			    unsigned top, FILE *stream)
{
	const struct nccl_rank_to_peer_link **order =
		calloc(joined->link_count + 1, sizeof(void *));
	size_t count = 0, rows;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < joined->link_count; i++) {
		if (joined->links[i].is_over_network == network && joined->links[i].bytes &&
		    joined->links[i].ns)
			order[count++] = &joined->links[i];
	}
	qsort(order, count, sizeof(void *), compare_links_by_bandwidth);
	rows = get_shown_row_count(count, top);
	if (count)
		fprintf(stream, "  Slowest links, by %s\n",
			network ? "network transfers" : "send and receive");
	for (size_t i = 0; i < rows; i++)
		write_link_row(data, order[i], nccl_compute_link_bandwidth(order[count / 2]),
			       stream);
	write_omitted_row_count(stream, count, rows);
	free(order);
	return 0;
}

static void write_shares_of_waiting(const struct nccl_joined_collectives *joined, FILE *stream)
{
	uint64_t all = joined->waiting_ns + joined->transfer_ns;

	if (all)
		fprintf(stream, "of their time on GPUs, %s is transfer and %s waiting for others\n",
			quantity_from_share(joined->transfer_ns, all).text,
			quantity_from_share(joined->waiting_ns, all).text);
	else
		fputs("what of their time is waiting is not known\n", stream);
	if (joined->collectives_in_doubt)
		nccl_print_wrapped_line(
			stream, 2,
			"%s of the collectives come behind a call that the ranks do not agree on "
			"(below): nothing is concluded from them",
			quantity_from_count(joined->collectives_in_doubt).text);
	if (joined->incomplete_collective_count)
		nccl_print_wrapped_line(
			stream, 2,
			"INCOMPLETE: %s of the collectives %s no record of some rank, which may be "
			"the late one: nothing is concluded from them",
			quantity_from_count(joined->incomplete_collective_count).text,
			joined->incomplete_collective_count == 1 ? "has" : "have");
}

/* ---- send and receive ---- */

static void write_shares_of_waiting_in_transfers(const struct nccl_paired_transfers *pairs,
						 FILE *stream)
{
	uint64_t all = pairs->transfer_ns + pairs->waiting_ns;

	fprintf(stream, "  %s send%s with their receives",
		quantity_from_count(pairs->pair_count).text, plural_suffix(pairs->pair_count));
	if (all)
		fprintf(stream,
			"; of the time of both, %s is transfer and %s waiting for the other",
			quantity_from_share(pairs->transfer_ns, all).text,
			quantity_from_share(pairs->waiting_ns, all).text);
	fputc('\n', stream);
}

static void write_longest_waits_in_transfers(const struct nccl_data *data,
					     const struct nccl_paired_transfers *pairs,
					     unsigned top, FILE *stream)
{
	size_t rows = get_shown_row_count(pairs->waiting_count, top);

	if (rows)
		fputs("  Longest waits in send and receive\n", stream);
	for (size_t i = 0; i < rows; i++) {
		const struct nccl_waiting_pair *pair = &pairs->waiting[i];

		nccl_print_wrapped_line(
			stream, 4,
			"Send #%" PRIu64 " from rank %d to rank %d of %s: transfer %s, waiting %s; "
			"%s entered last",
			pair->sequence, pair->from, pair->to,
			nccl_format_communicator_label(data, pair->communicator).text,
			quantity_from_ns(pair->transfer_ns).text,
			quantity_from_ns(pair->wait_ns).text,
			nccl_format_rank_label(data, pair->late_member).text);
	}
}

static void write_faulty_pair(const struct nccl_data *data, const struct nccl_faulty_pair *pair,
			      FILE *stream)
{
	struct nccl_label_text of = nccl_format_communicator_label(data, pair->communicator);

	if (pair->fault == NCCL_PAIR_BYTES_DIFFER)
		nccl_print_wrapped_line(stream, 4,
					"MISMATCH: Send #%" PRIu64 " of %s: rank %d sends %s, and "
					"rank %d receives %s",
					pair->sequence, of.text, pair->from,
					quantity_from_bytes(pair->sent_bytes).text, pair->to,
					quantity_from_bytes(pair->received_bytes).text);
	else
		nccl_print_wrapped_line(stream, 4,
					"UNMATCHED: %s #%" PRIu64
					" of %s from rank %d to rank %d: rank %d has no "
					"%s for it",
					pair->fault == NCCL_PAIR_SEND_ALONE ? "Send" : "Recv",
					pair->sequence, of.text, pair->from, pair->to,
					pair->fault == NCCL_PAIR_SEND_ALONE ? pair->to : pair->from,
					pair->fault == NCCL_PAIR_SEND_ALONE ? "Recv" : "Send");
}

static void write_faulty_pairs(const struct nccl_data *data,
			       const struct nccl_paired_transfers *pairs, unsigned top,
			       FILE *stream)
{
	size_t kept = pairs->faulty_pair_count < NCCL_FAULTY_PAIRS_KEPT_MAX
			      ? (size_t)pairs->faulty_pair_count
			      : NCCL_FAULTY_PAIRS_KEPT_MAX;
	size_t rows = get_shown_row_count(kept, top);

	if (rows)
		fputs("  Sends and receives that do not match\n", stream);
	for (size_t i = 0; i < rows; i++)
		write_faulty_pair(data, &pairs->faulty[i], stream);
	write_omitted_row_count(stream, (size_t)pairs->faulty_pair_count, rows);
}

/* ---- the whole ---- */

static void write_counts_between_ranks(const struct nccl_joined_collectives *joined, FILE *stream)
{
	fputs("\nBetween ranks\n", stream);
	if (joined->count) {
		fprintf(stream, "  %s collective%s by more than one rank; ",
			quantity_from_count(joined->count).text, plural_suffix(joined->count));
		write_shares_of_waiting(joined, stream);
	}
	if (joined->pairs->pair_count)
		write_shares_of_waiting_in_transfers(joined->pairs, stream);
}

int nccl_write_rank_comparison(const struct nccl_data *data,
			       const struct nccl_joined_collectives *joined, unsigned top,
			       FILE *stream)
{
	int result = 0;

	if (!joined->count && !joined->link_count && !joined->pairs->pair_count)
		return 0;
	write_counts_between_ranks(joined, stream);
	if (joined->timed_collective_count)
		write_collective_transfer_table(data, joined, top, stream);
	if (joined->count || joined->pairs->pair_count)
		result = write_late_rank_table(data, joined, top, stream);
	if (result == 0)
		result = nccl_write_passed_waits(data, joined, top, stream);
	if (result == 0 && joined->count)
		result = write_longest_waits(data, joined, top, stream);
	write_longest_waits_in_transfers(data, joined->pairs, top, stream);
	if (joined->count)
		write_skipped_or_mismatched_calls(data, joined, top, stream);
	write_faulty_pairs(data, joined->pairs, top, stream);
	if (result == 0)
		result = write_link_table(data, joined, true, top, stream);
	return result == 0 ? write_link_table(data, joined, false, top, stream) : result;
}

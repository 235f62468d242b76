/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary's part about ranks together: who is late and what that costs, what was skipped or
 * called otherwise, and the slowest links.
 */
#include "output/nccl_text_join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "output/nccl.h"

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* How many rows to show of `count`. */
static size_t shown(size_t count, unsigned top)
{
	return top && count > top ? top : count;
}

static void write_rest(FILE *stream, size_t count, size_t rows)
{
	if (rows < count)
		fprintf(stream, "    … and %zu more (--top 0 shows all)\n", count - rows);
}

/* ---- transfers ---- */

static void write_transfers(const struct nccl_data *data, const struct nccl_joined *joined,
			    unsigned top, FILE *stream)
{
	struct nccl_transfer_sum sum;
	size_t place = 0, rows = 0;

	fprintf(stream, "  Transfers without waiting\n    %-18s %-13s %10s %9s %8s %8s %12s\n",
		"communicator", "function", "collectives", "mean", "algbw", "busbw",
		"longest wait");
	while (nccl_transfer_next(data, joined, &place, &sum)) {
		if (!sum.collectives || (top && rows == top))
			continue;
		rows++;
		fputs("    ", stream);
		format_fitted(stream, nccl_team_label(data, sum.team).text, 18);
		fputc(' ', stream);
		format_fitted(stream, data->functions[sum.function].name, 13);
		fprintf(stream, " %11s %9s %8.4g %8.4g %12s\n",
			quantity_count(sum.collectives).text,
			quantity_time(sum.ns / sum.collectives).text,
			nccl_algorithm_bandwidth(sum.bytes, sum.ns),
			nccl_bus_bandwidth(sum.bus_bytes, sum.ns),
			quantity_time(sum.longest_wait_ns).text);
	}
}

/* ---- late ranks ---- */

/* Of one process over all of its communicators. */
struct straggler {
	uint32_t process;
	struct nccl_rank_sum sum;
};

static int worst_first(const void *left, const void *right)
{
	const struct straggler *a = left, *b = right;

	if (a->sum.caused_ns != b->sum.caused_ns)
		return a->sum.caused_ns > b->sum.caused_ns ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

static struct straggler *make_stragglers(const struct nccl_data *data,
					 const struct nccl_joined *joined)
{
	struct straggler *stragglers = calloc((size_t)data->process_count + 1, sizeof(*stragglers));

	for (uint32_t i = 0; stragglers && i < data->process_count; i++)
		stragglers[i].process = i;
	for (uint32_t i = 0; stragglers && i < data->member_count; i++) {
		struct nccl_rank_sum *sum = &stragglers[data->members[i].process].sum;
		const struct nccl_rank_sum *own = &joined->ranks[i];

		sum->joined += own->joined;
		sum->last += own->last;
		sum->caused_ns += own->caused_ns;
		sum->waited_ns += own->waited_ns;
		sum->duration_ns += own->duration_ns;
		sum->left_out += own->left_out;
	}
	if (stragglers && data->process_count > 1)
		qsort(stragglers, data->process_count, sizeof(*stragglers), worst_first);
	return stragglers;
}

static int write_stragglers(const struct nccl_data *data, const struct nccl_joined *joined,
			    unsigned top, FILE *stream)
{
	struct straggler *stragglers = make_stragglers(data, joined);
	size_t rows = shown(data->process_count, top);

	if (!stragglers)
		return -ENOMEM;
	fprintf(stream, "  Late ranks\n    %6s %-20s %10s %10s %12s %12s %9s %8s\n", "rank", "host",
		"pid", "last in", "others wait", "waits itself", "of time", "skipped");
	for (size_t i = 0; i < rows; i++) {
		const struct straggler *straggler = &stragglers[i];
		const struct nccl_process *process = &data->processes[straggler->process];

		fprintf(stream, "    %6d ", process->rank);
		format_fitted(stream, process->file.header.host, 20);
		fprintf(stream, " %10u %10s %12s %12s %9s %8s\n", process->file.header.pid,
			quantity_count(straggler->sum.last).text,
			quantity_time(straggler->sum.caused_ns).text,
			quantity_time(straggler->sum.waited_ns).text,
			quantity_share(straggler->sum.waited_ns, straggler->sum.duration_ns).text,
			quantity_count(straggler->sum.left_out).text);
	}
	write_rest(stream, data->process_count, rows);
	free(stragglers);
	return 0;
}

/* ---- the collectives that cost the most ---- */

static uint64_t wait_of(const struct nccl_collective *collective)
{
	return collective->timed > 1 ? collective->longest_ns - collective->shortest_ns : 0;
}

static int longest_wait_first(const void *left, const void *right, void *context)
{
	const struct nccl_collective *collectives = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint64_t first = wait_of(&collectives[a]), second = wait_of(&collectives[b]);

	if (first != second)
		return first > second ? -1 : 1;
	return a < b ? -1 : a > b;
}

static struct nccl_label collective_label(const struct nccl_data *data,
					  const struct nccl_collective *collective)
{
	struct nccl_label label;

	snprintf(label.text, sizeof(label.text), "%.30s #%" PRIu64 " of %.40s",
		 data->functions[collective->function].name, collective->sequence,
		 nccl_team_label(data, collective->team).text);
	return label;
}

static void write_wait(const struct nccl_data *data, const struct nccl_collective *collective,
		       FILE *stream)
{
	uint32_t late;
	enum nccl_lateness how = nccl_collective_late(collective, &late);
	char who[160] = "nobody can be told to be late";

	if (how == NCCL_LATENESS_CLOCK)
		snprintf(who, sizeof(who), "rank %d entered last, %s after the first (± %s)",
			 data->members[late].rank,
			 quantity_time(collective->last_ns - collective->first_ns).text,
			 quantity_time(collective->error_ns).text);
	else if (how == NCCL_LATENESS_DURATION)
		snprintf(who, sizeof(who), "rank %d entered last (it was in it for the shortest)",
			 data->members[late].rank);
	nccl_line(stream, 4, "%s: transfer %s, waiting up to %s; %s",
		  collective_label(data, collective).text,
		  quantity_time(collective->shortest_ns).text,
		  quantity_time(wait_of(collective)).text, who);
}

static int write_waits(const struct nccl_data *data, const struct nccl_joined *joined, unsigned top,
		       FILE *stream)
{
	uint32_t *order = calloc(joined->count + 1, sizeof(*order));
	size_t count = 0, rows;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < joined->count; i++) {
		if (wait_of(&joined->collectives[i]))
			order[count++] = i;
	}
	qsort_r(order, count, sizeof(*order), longest_wait_first, joined->collectives);
	rows = shown(count, top);
	if (rows)
		fputs("  Longest waits\n", stream);
	for (size_t i = 0; i < rows; i++)
		write_wait(data, &joined->collectives[order[i]], stream);
	write_rest(stream, count, rows);
	free(order);
	return 0;
}

/* ---- skipped or mismatched ---- */

static void write_difference(const struct nccl_data *data, const struct nccl_sum *sum,
			     const struct nccl_difference *difference, FILE *stream)
{
	const struct nccl_member *member = &data->members[sum->member];
	const char *function = data->functions[sum->function].name;
	int32_t other = data->members[difference->other_member].rank;
	struct nccl_label team = nccl_team_label(data, member->team);

	if (nccl_difference_is_left_out(difference))
		nccl_line(stream, 4,
			  "SKIPPED: from %s #%" PRIu64
			  " of %s on, the calls of rank %d are those that rank %d makes one later: "
			  "it has left one out",
			  function, difference->first_sequence, team.text, member->rank, other);
	else
		nccl_line(stream, 4,
			  "MISMATCH: rank %d calls %s of %s with another size, type or root than "
			  "rank %d: %s time%s, first #%" PRIu64,
			  member->rank, function, team.text, other,
			  quantity_count(difference->count).text, plural(difference->count),
			  difference->first_sequence);
}

static void list_missing(const struct nccl_data *data, const struct nccl_join_problem *problem,
			 const struct nccl_collective *collective, char *ret, size_t size)
{
	const struct nccl_team *team = &data->teams[collective->team];
	size_t used = 0;

	*ret = '\0';
	for (uint32_t i = 0; i < team->member_count && used + 16 < size; i++) {
		if (!(problem->present[i / 64] >> (i % 64) & 1))
			used += (size_t)snprintf(ret + used, size - used, "%s%d", used ? ", " : "",
						 data->members[team->members[i]].rank);
	}
	if (used + 16 >= size)
		snprintf(ret + used, size - used, ", …");
}

static bool is_worth_telling(const struct nccl_joined *joined,
			     const struct nccl_join_problem *problem)
{
	return problem->unseen ||
	       (problem->absent && !joined->collectives[problem->collective].in_flight);
}

static void write_problem(const struct nccl_data *data, const struct nccl_joined *joined,
			  const struct nccl_join_problem *problem, FILE *stream)
{
	const struct nccl_collective *collective = &joined->collectives[problem->collective];
	char ranks[256];

	list_missing(data, problem, collective, ranks, sizeof(ranks));
	nccl_line(stream, 4,
		  problem->unseen ? "%s: NCCL told nothing of it on rank %s"
				  : "%s: not reached by rank %s",
		  collective_label(data, collective).text, ranks);
}

static void write_problems(const struct nccl_data *data, const struct nccl_joined *joined,
			   unsigned top, FILE *stream)
{
	size_t count = 0, written = 0;

	for (uint32_t i = 0; i < data->sum_count; i++)
		count += joined->differences[i].count != 0;
	for (size_t i = 0; i < joined->problem_count; i++)
		count += is_worth_telling(joined, &joined->problems[i]);
	if (count)
		fputs("  Skipped or mismatched\n", stream);
	for (uint32_t i = 0; i < data->sum_count && written < shown(count, top); i++) {
		if (!joined->differences[i].count)
			continue;
		write_difference(data, &data->sums[i], &joined->differences[i], stream);
		written++;
	}
	for (size_t i = 0; i < joined->problem_count && written < shown(count, top); i++) {
		if (!is_worth_telling(joined, &joined->problems[i]))
			continue;
		write_problem(data, joined, &joined->problems[i], stream);
		written++;
	}
	if (count)
		write_rest(stream, count + joined->more_problems, written);
}

/* ---- links ---- */

static int slowest_first(const void *left, const void *right)
{
	const struct nccl_link *const *a = left, *const *b = right;
	double first = nccl_link_bandwidth(*a), second = nccl_link_bandwidth(*b);

	if (first < second)
		return -1;
	return first > second;
}

static void write_link(const struct nccl_data *data, const struct nccl_link *link, double median,
		       FILE *stream)
{
	const struct nccl_member *member = &data->members[link->member];
	char waiting[96] = "";

	if (link->wait_ns)
		snprintf(waiting, sizeof(waiting), ", %s of it waiting for the network",
			 quantity_share(link->wait_ns, link->ns).text);
	nccl_line(stream, 4,
		  "rank %d %s rank %d of %s: %.3g GB/s, %.0f %% of the median; %s transfers of %s, "
		  "slowest %s%s",
		  member->rank, link->sends ? "to" : "from", link->peer,
		  nccl_team_label(data, member->team).text, nccl_link_bandwidth(link),
		  median > 0 ? 100 * nccl_link_bandwidth(link) / median : 0,
		  quantity_count(link->transfers).text,
		  quantity_bytes(link->bytes / link->transfers).text,
		  quantity_time(link->slowest_ns).text, waiting);
}

static int write_links(const struct nccl_data *data, const struct nccl_joined *joined, bool network,
		       unsigned top, FILE *stream)
{
	const struct nccl_link **order = calloc(joined->link_count + 1, sizeof(void *));
	size_t count = 0, rows;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < joined->link_count; i++) {
		if (joined->links[i].network == network && joined->links[i].bytes &&
		    joined->links[i].ns)
			order[count++] = &joined->links[i];
	}
	qsort(order, count, sizeof(void *), slowest_first);
	rows = shown(count, top);
	if (count)
		fprintf(stream, "  Slowest links, by %s\n",
			network ? "network transfers" : "send and receive");
	for (size_t i = 0; i < rows; i++)
		write_link(data, order[i], nccl_link_bandwidth(order[count / 2]), stream);
	write_rest(stream, count, rows);
	free(order);
	return 0;
}

int nccl_write_joined(const struct nccl_data *data, const struct nccl_joined *joined, unsigned top,
		      FILE *stream)
{
	uint64_t all = joined->waiting_ns + joined->transfer_ns;
	int result = 0;

	if (joined->count) {
		fprintf(stream, "\nBetween ranks\n  %s collective%s by more than one rank; ",
			quantity_count(joined->count).text, plural(joined->count));
		fprintf(stream, "of their time on GPUs, %s is transfer and %s waiting for others\n",
			quantity_share(joined->transfer_ns, all).text,
			quantity_share(joined->waiting_ns, all).text);
		write_transfers(data, joined, top, stream);
		result = write_stragglers(data, joined, top, stream);
		if (result == 0)
			result = write_waits(data, joined, top, stream);
		write_problems(data, joined, top, stream);
	} else if (joined->link_count) {
		fputs("\nBetween ranks\n", stream);
	}
	if (result == 0)
		result = write_links(data, joined, true, top, stream);
	return result == 0 ? write_links(data, joined, false, top, stream) : result;
}

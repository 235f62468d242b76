/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lines about what holds a job up: the ranks that others wait for and that wait for nobody, and who
 * waits behind them.
 */
#include <inttypes.h>
#include <string.h>

#include "output/nccl/nccl.h"

#define CYCLE_LENGTH_SHOWN_MAX 8
#define DIRECT_VICTIMS_SHOWN   4

static struct nccl_label_text format_stuck_label(const struct nccl_data *data,
						 const struct nccl_hang_findings *hang,
						 uint32_t number)
{
	const struct nccl_stuck_operation *stuck = &hang->stuck_operations[number];
	struct nccl_label_text label;

	snprintf(label.text, sizeof(label.text), "%.48s of %.40s",
		 nccl_format_operation_label(data, stuck->function, &stuck->waiting->record).text,
		 nccl_format_communicator_label(data, stuck->communicator).text);
	return label;
}

/* "rank 2 in AllReduce #1 of "tp1", rank 1 in …": who waits for it directly, in what. */
static void format_direct_victims(const struct nccl_data *data,
				  const struct nccl_hang_findings *hang,
				  const struct nccl_hang_roots *roots, uint32_t awaited, char *ret,
				  size_t size)
{
	size_t used = 0, shown = 0;

	*ret = '\0';
	for (size_t i = 0; i < roots->edge_count; i++) {
		const struct nccl_wait_edge *edge = &roots->edges[i];

		if (edge->awaited != awaited)
			continue;
		if (shown++ == DIRECT_VICTIMS_SHOWN) {
			snprintf(ret + used, size - used, ", …");
			return;
		}
		used += (size_t)snprintf(ret + used, size - used, "%s%s in %s", used ? ", " : "",
					 nccl_format_job_rank_label(data, edge->waiter).text,
					 format_stuck_label(data, hang, edge->stuck).text);
		if (used >= size)
			return;
	}
}

static void format_victim_count(const struct nccl_hang_root *root, char *ret, size_t size)
{
	uint32_t behind = root->victim_count - root->direct_count;

	snprintf(ret, size, "%u rank%s for it", root->direct_count,
		 root->direct_count == 1 ? " waits" : "s wait");
	if (behind)
		snprintf(ret + strlen(ret), size - strlen(ret), ", and %u more behind %s", behind,
			 root->direct_count == 1 ? "that one" : "those");
}

static void write_rank_root(const struct nccl_data *data, const struct nccl_hang_findings *hang,
			    const struct nccl_hang_roots *roots, const struct nccl_hang_root *root,
			    FILE *stream)
{
	char direct[900], count[96];

	format_direct_victims(data, hang, roots, root->job_rank, direct, sizeof(direct));
	format_victim_count(root, count, sizeof(count));
	nccl_print_wrapped_line(
		stream, 2, "The root is %s (%s), which %s%s. %s: %s",
		nccl_format_job_rank_label(data, root->job_rank).text,
		nccl_format_process(data, data->job_ranks[root->job_rank].process).text,
		root->kind == NCCL_ROOT_DIFFERS
			? "waits in a call that is not the one of the others"
			: "is not in the operations that others wait in, and waits in no other one",
		root->is_unsure ? ", as far as its records go, some of which are lost" : "", count,
		direct);
}

static void write_cycle(const struct nccl_data *data, const struct nccl_hang_findings *hang,
			const struct nccl_hang_roots *roots, const struct nccl_hang_root *root,
			FILE *stream)
{
	struct nccl_wait_edge cycle[CYCLE_LENGTH_SHOWN_MAX];
	size_t count = nccl_list_cycle(roots, data->job_rank_count, root->job_rank, cycle,
				       CYCLE_LENGTH_SHOWN_MAX),
	       used = 0;
	char text[1200] = "";

	for (size_t i = 0; i < count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%s waits in %s for %s", i ? "; " : "",
					 nccl_format_job_rank_label(data, cycle[i].waiter).text,
					 format_stuck_label(data, hang, cycle[i].stuck).text,
					 nccl_format_job_rank_label(data, cycle[i].awaited).text);
	nccl_print_wrapped_line(stream, 2,
				"The root is a cycle of ranks that wait for each other: %s", text);
}

static void write_root(const struct nccl_data *data, const struct nccl_hang_findings *hang,
		       const struct nccl_hang_roots *roots, const struct nccl_hang_root *root,
		       FILE *stream)
{
	switch (root->kind) {
	case NCCL_ROOT_CYCLE:
		write_cycle(data, hang, roots, root, stream);
		break;
	case NCCL_ROOT_ALL_ARE_INSIDE:
		nccl_print_wrapped_line(
			stream, 2,
			"The root is %s itself: all ranks that it needs are in it, or "
			"through it (its open channels and transfers are below)",
			format_stuck_label(data, hang, root->stuck).text);
		break;
	case NCCL_ROOT_NO_RECORDS:
		nccl_print_wrapped_line(
			stream, 2,
			"INCOMPLETE: %s has no records here, and ranks wait in %s; whether they "
			"wait for it is not known",
			nccl_format_peer_label(
				data, hang->stuck_operations[root->stuck].communicator, root->rank)
				.text,
			format_stuck_label(data, hang, root->stuck).text);
		break;
	default:
		write_rank_root(data, hang, roots, root, stream);
		break;
	}
}

void nccl_write_hang_roots(struct nccl_data *data, const struct nccl_hang_findings *hang,
			   const struct nccl_hang_roots *roots, FILE *stream, unsigned most)
{
	size_t written = 0;

	for (; written < roots->root_count && (!most || written < most); written++)
		write_root(data, hang, roots, &roots->roots[written], stream);
	if (written < roots->root_count)
		nccl_print_wrapped_line(stream, 2, "… and %zu more roots",
					roots->root_count - written);
}

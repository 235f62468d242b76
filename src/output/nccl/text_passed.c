/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lines about lateness that ranks pass on: for whom they had waited, where they came late because
 * of that, and who began it.
 */
#include <errno.h>
#include <stdlib.h>

#include "output/nccl/text_join.h"

#include "output/nccl/nccl.h"

/* The longest first. */
static int compare_passed_waits(const void *left, const void *right)
{
	const struct nccl_passed_wait *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->member != b->member)
		return a->member < b->member ? -1 : 1;
	if (a->waiting_member != b->waiting_member)
		return a->waiting_member < b->waiting_member ? -1 : 1;
	return a->awaited_member < b->awaited_member ? -1 : a->awaited_member > b->awaited_member;
}

static void write_passed_wait(const struct nccl_data *data,
			      const struct nccl_joined_collectives *joined,
			      const struct nccl_passed_wait *wait, FILE *stream)
{
	const struct nccl_communicator_rank *member = &data->members[wait->member],
					    *waiting = &data->members[wait->waiting_member];
	uint32_t root = nccl_find_root_of_passed_wait(data, joined, wait);
	char began[160] = "";

	if (wait->awaited_member == NCCL_INDEX_NONE)
		snprintf(began, sizeof(began), "; who was late there is not known");
	else if (root == NCCL_INDEX_NONE)
		snprintf(began, sizeof(began), "; who began it is not known");
	else if (root != data->members[wait->awaited_member].job_rank_index)
		snprintf(began, sizeof(began), "; %s began it",
			 nccl_format_job_rank_label(data, root).text);
	nccl_print_wrapped_line(
		stream, 4,
		"%s into %s: others waited %s (%s time%s), for it had waited for %s in %s%s",
		nccl_format_job_rank_label(data, member->job_rank_index).text,
		nccl_format_communicator_label(data, member->communicator).text,
		quantity_from_ns(wait->ns).text, quantity_from_count(wait->count).text,
		wait->count == 1 ? "" : "s",
		wait->awaited_member == NCCL_INDEX_NONE
			? "somebody"
			: nccl_format_job_rank_label(
				  data, data->members[wait->awaited_member].job_rank_index)
				  .text,
		nccl_format_communicator_label(data, waiting->communicator).text, began);
}

int nccl_write_passed_waits(const struct nccl_data *data,
			    const struct nccl_joined_collectives *joined, unsigned top,
			    FILE *stream)
{
	size_t count = joined->passed_wait_count, rows = top && count > top ? top : count;
	struct nccl_passed_wait *order = calloc(count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = joined->passed_waits[i];
	qsort(order, count, sizeof(*order), compare_passed_waits);
	if (count)
		fputs("  Late because of others\n", stream);
	for (size_t i = 0; i < rows; i++)
		write_passed_wait(data, joined, &order[i], stream);
	if (rows < count)
		fprintf(stream, "    … and %zu more (--top 0 shows all)\n", count - rows);
	free(order);
	return 0;
}

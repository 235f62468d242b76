/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums for outputs; see rows.h.
 */
#include "output/nccl/rows.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/id_map.h"

static int compare_rows_by_time(const void *left, const void *right)
{
	const struct nccl_function_sum_row *a = left, *b = right;

	if (a->tally->ns != b->tally->ns)
		return a->tally->ns > b->tally->ns ? -1 : 1;
	if (a->tally->operations != b->tally->operations)
		return a->tally->operations > b->tally->operations ? -1 : 1;
	if (a->communicator != b->communicator)
		return a->communicator < b->communicator ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static struct nccl_function_sum_row *find_or_add_sum_row(struct nccl_function_sum_rows *rows,
							 struct id_map *known,
							 uint32_t communicator, uint32_t function)
{
	uint64_t key = (uint64_t)communicator << 32 | function;
	uint32_t index = id_map_get(known, key);
	struct nccl_function_sum_row *row;

	if (index != ID_MAP_NONE)
		return &rows->rows[index];
	row = &rows->rows[rows->count];
	*row = (struct nccl_function_sum_row){communicator, function,
					      calloc(1, sizeof(*row->tally))};
	if (!row->tally || id_map_set(known, key, (uint32_t)rows->count) < 0) {
		free(row->tally);
		return NULL;
	}
	rows->count++;
	return row;
}

int nccl_function_sum_rows_build(const struct nccl_data *data, bool by_communicator,
				 struct nccl_function_sum_rows *ret)
{
	struct id_map known = {0};
	int result = 0;

	*ret = (struct nccl_function_sum_rows){
		.rows = calloc((size_t)data->rank_function_sum_count + 1, sizeof(*ret->rows))};
	if (!ret->rows)
		return -ENOMEM;
	for (uint32_t i = 0; result == 0 && i < data->rank_function_sum_count; i++) {
		const struct nccl_rank_function_sums *sum = &data->rank_function_sums[i];
		uint32_t communicator =
			by_communicator ? data->members[sum->member].communicator : NCCL_INDEX_NONE;
		struct nccl_function_sum_row *row =
			find_or_add_sum_row(ret, &known, communicator, sum->function);

		if (row)
			nccl_tally_merge(row->tally, &sum->tally);
		else
			result = -ENOMEM;
	}
	id_map_deinit(&known);
	if (result < 0)
		nccl_function_sum_rows_deinit(ret);
	else if (ret->count > 1)
		qsort(ret->rows, ret->count, sizeof(*ret->rows), compare_rows_by_time);
	return result;
}

void nccl_function_sum_rows_deinit(struct nccl_function_sum_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		free(rows->rows[i].tally);
	free(rows->rows);
	*rows = (struct nccl_function_sum_rows){0};
}

uint64_t nccl_sum_one_loss_of_all_processes(const struct nccl_data *data, enum nccl_loss loss)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		sum += data->processes[i].file.header.losses[loss];
	return sum;
}

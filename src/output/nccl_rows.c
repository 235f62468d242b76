/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums for outputs; see nccl_rows.h.
 */
#include "output/nccl_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/id_map.h"

static int heaviest_first(const void *left, const void *right)
{
	const struct nccl_row *a = left, *b = right;

	if (a->tally->ns != b->tally->ns)
		return a->tally->ns > b->tally->ns ? -1 : 1;
	if (a->tally->operations != b->tally->operations)
		return a->tally->operations > b->tally->operations ? -1 : 1;
	if (a->team != b->team)
		return a->team < b->team ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static struct nccl_row *row_of(struct nccl_rows *rows, struct id_map *known, uint32_t team,
			       uint32_t function)
{
	uint64_t key = (uint64_t)team << 32 | function;
	uint32_t index = id_map_get(known, key);
	struct nccl_row *row;

	if (index != ID_MAP_NONE)
		return &rows->rows[index];
	row = &rows->rows[rows->count];
	*row = (struct nccl_row){team, function, calloc(1, sizeof(*row->tally))};
	if (!row->tally || id_map_set(known, key, (uint32_t)rows->count) < 0) {
		free(row->tally);
		return NULL;
	}
	rows->count++;
	return row;
}

int nccl_rows_make(const struct nccl_data *data, bool by_team, struct nccl_rows *ret)
{
	struct id_map known = {0};
	int result = 0;

	*ret = (struct nccl_rows){.rows = calloc((size_t)data->sum_count + 1, sizeof(*ret->rows))};
	if (!ret->rows)
		return -ENOMEM;
	for (uint32_t i = 0; result == 0 && i < data->sum_count; i++) {
		const struct nccl_sum *sum = &data->sums[i];
		uint32_t team = by_team ? data->members[sum->member].team : NCCL_NONE;
		struct nccl_row *row = row_of(ret, &known, team, sum->function);

		if (row)
			nccl_tally_merge(row->tally, &sum->tally);
		else
			result = -ENOMEM;
	}
	id_map_deinit(&known);
	if (result < 0)
		nccl_rows_deinit(ret);
	else if (ret->count > 1)
		qsort(ret->rows, ret->count, sizeof(*ret->rows), heaviest_first);
	return result;
}

void nccl_rows_deinit(struct nccl_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		free(rows->rows[i].tally);
	free(rows->rows);
	*rows = (struct nccl_rows){0};
}

uint64_t nccl_loss_sum(const struct nccl_data *data, enum nccl_loss loss)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		sum += data->processes[i].file.header.losses[loss];
	return sum;
}

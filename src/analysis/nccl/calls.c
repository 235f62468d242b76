/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The order of calls; see calls.h. Four bytes a call are kept during the pass over the records.
 */
#include "analysis/nccl/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/private.h"

#define CALL_SHAPE_NONE         UINT32_MAX
#define CALLS_COMPARED_MAX      64 /* behind a difference, to see what it is */
#define DIFFERING_CALLS_MAX     4096
#define FUNCTIONS_IN_A_KEY_BITS 32

/* ---- recording ---- */

static uint64_t hash_shape(const struct nccl_call_shape *shape)
{
	uint64_t hash = id_map_hash_key(id_map_hash_key(shape->bytes + 1) ^
					((uint64_t)shape->function << 32 | (uint32_t)shape->root));

	for (const char *at = shape->data_type; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return hash;
}

static int find_or_add_shape(struct nccl_data *data, const struct nccl_call_shape *shape,
			     uint32_t *ret)
{
	struct nccl_private *private = nccl_get_private(data);
	uint64_t key = hash_shape(shape);

	*ret = id_map_get(&private->call_shape_index_by_key, key);
	if (*ret != ID_MAP_NONE)
		return 0;
	if (array_reserve_one_more((void **)&data->call_shapes, &private->call_shape_capacity,
				   data->call_shape_count, sizeof(*data->call_shapes)) < 0)
		return -ENOMEM;
	*ret = data->call_shape_count++;
	data->call_shapes[*ret] = *shape;
	data->call_shapes[*ret].data_type = arena_intern_string(&private->arena, shape->data_type);
	if (!data->call_shapes[*ret].data_type)
		return -ENOMEM;
	return id_map_set(&private->call_shape_index_by_key, key, *ret);
}

int nccl_add_call_of_rank(struct nccl_data *data, const struct nccl_operation_view *view)
{
	struct nccl_communicator_rank *member = &data->members[view->member];
	const struct nccl_operation *record = view->record;
	struct nccl_call_shape shape = {
		view->function, record->root, record->bytes,
		nccl_get_interned_name(data, view->process, record->data_type)};
	uint32_t index;

	/* Where one is missing, nobody knows the places of those behind it. */
	if (record->ordinal != member->next_ordinal++)
		member->has_gap_in_calls = true;
	if (member->has_gap_in_calls || record->kind == NCCL_KIND_P2P ||
	    data->communicators[member->communicator].member_count < 2)
		return 0;
	if (find_or_add_shape(data, &shape, &index) < 0 ||
	    array_reserve_one_more((void **)&member->calls, &member->call_capacity,
				   member->call_count, sizeof(*member->calls)) < 0)
		return -ENOMEM;
	member->calls[member->call_count++] = index;
	return 0;
}

/* ---- what the majority calls ---- */

static bool member_can_be_compared(const struct nccl_data *data, uint32_t index)
{
	const struct nccl_communicator_rank *member = &data->members[index];
	const struct nccl_process *process = &data->processes[member->process];

	return !member->has_gap_in_calls && !process->lost_operation_count &&
	       !process->overwritten_operation_count;
}

static uint32_t get_call(const struct nccl_communicator_rank *member, size_t position)
{
	return position < member->call_count ? member->calls[position] : CALL_SHAPE_NONE;
}

/* Of the ranks that came so far, what more than half call; else none (Boyer and Moore's vote, and
 * a count to be sure). */
static uint32_t find_majority_call(const struct nccl_data *data,
				   const struct nccl_communicator *communicator, size_t position)
{
	uint32_t candidate = CALL_SHAPE_NONE, votes = 0, for_it = 0, all = 0;

	for (uint32_t i = 0; i < communicator->member_count; i++) {
		uint32_t call = get_call(&data->members[communicator->members[i]], position);

		if (call == CALL_SHAPE_NONE ||
		    !member_can_be_compared(data, communicator->members[i]))
			continue;
		all++;
		if (!votes)
			candidate = call;
		votes += call == candidate ? 1 : -1u;
	}
	for (uint32_t i = 0; i < communicator->member_count; i++)
		for_it += member_can_be_compared(data, communicator->members[i]) &&
			  get_call(&data->members[communicator->members[i]], position) == candidate;
	return candidate != CALL_SHAPE_NONE && 2 * for_it > all ? candidate : CALL_SHAPE_NONE;
}

/* ---- differences ---- */

struct call_comparison {
	struct nccl_data *data;
	uint32_t communicator;
	uint32_t *majority; /* by position */
	size_t count;
};

static uint32_t get_majority_call(const struct call_comparison *comparison, size_t position)
{
	return position < comparison->count ? comparison->majority[position] : CALL_SHAPE_NONE;
}

/* How many of the calls behind a place are those of the majority, some places further on; less
 * those that are not. */
static int count_agreeing_calls(const struct call_comparison *comparison,
				const struct nccl_communicator_rank *member, size_t own,
				size_t others)
{
	int agreeing = 0;

	for (size_t i = 0; i < CALLS_COMPARED_MAX; i++) {
		uint32_t call = get_call(member, own + i);
		uint32_t other = get_majority_call(comparison, others + i);

		if (call == CALL_SHAPE_NONE || other == CALL_SHAPE_NONE)
			break;
		agreeing += call == other ? 1 : -1;
	}
	return agreeing;
}

static enum nccl_call_difference
find_kind_of_difference(const struct call_comparison *comparison,
			const struct nccl_communicator_rank *member, size_t at)
{
	int different = count_agreeing_calls(comparison, member, at + 1, at + 1);
	int skipped = count_agreeing_calls(comparison, member, at, at + 1);
	int extra = count_agreeing_calls(comparison, member, at + 1, at);

	if (skipped > different && skipped >= extra)
		return NCCL_CALL_IS_SKIPPED;
	return extra > different ? NCCL_CALL_IS_EXTRA : NCCL_CALL_IS_DIFFERENT;
}

static int add_differing_call(struct nccl_data *data, const struct nccl_differing_call *call)
{
	struct nccl_private *private = nccl_get_private(data);

	if (data->differing_call_count >= DIFFERING_CALLS_MAX)
		return 0;
	if (array_reserve_one_more((void **)&data->differing_calls,
				   &private->differing_call_capacity, data->differing_call_count,
				   sizeof(*data->differing_calls)) < 0)
		return -ENOMEM;
	data->differing_calls[data->differing_call_count++] = *call;
	return 0;
}

/* The first one, and what it is. Behind a call that was skipped or made once more all others are
 * at other places, and no difference of their own. */
static int compare_calls_of_member(struct call_comparison *comparison, uint32_t index)
{
	const struct nccl_communicator_rank *member = &comparison->data->members[index];
	struct nccl_differing_call found = {.communicator = comparison->communicator,
					    .member = index,
					    .other_member = NCCL_INDEX_NONE};

	for (size_t at = 0; at < member->call_count; at++) {
		uint32_t other = get_majority_call(comparison, at);

		if (other == CALL_SHAPE_NONE || member->calls[at] == other)
			continue;
		if (found.count++)
			continue;
		found.position = at;
		found.shape = member->calls[at];
		found.other_shape = other;
		found.difference = find_kind_of_difference(comparison, member, at);
		if (found.difference != NCCL_CALL_IS_DIFFERENT)
			break;
	}
	if (!found.count)
		return 0;
	return add_differing_call(comparison->data, &found);
}

/* Where there is no majority, the first two that do not agree. */
static int find_disputed_call(struct call_comparison *comparison)
{
	const struct nccl_data *data = comparison->data;
	const struct nccl_communicator *communicator =
		&data->communicators[comparison->communicator];
	size_t at = 0;
	uint32_t one = NCCL_INDEX_NONE;

	while (at < comparison->count && comparison->majority[at] != CALL_SHAPE_NONE)
		at++;
	if (at == comparison->count)
		return 0;
	for (uint32_t i = 0; i < communicator->member_count; i++) {
		uint32_t member = communicator->members[i],
			 call = get_call(&data->members[member], at);

		if (call == CALL_SHAPE_NONE || !member_can_be_compared(data, member))
			continue;
		if (one == NCCL_INDEX_NONE) {
			one = member;
		} else if (call != data->members[one].calls[at]) {
			return add_differing_call(comparison->data,
						  &(struct nccl_differing_call){
							  comparison->communicator, one, member,
							  NCCL_CALL_IS_DISPUTED, at,
							  data->members[one].calls[at], call, 1});
		}
	}
	return 0;
}

/* The function that ranks call at a place; *ret_differs: not all of them. */
static uint32_t get_function_at(const struct call_comparison *comparison, size_t position,
				bool *ret_differs)
{
	const struct nccl_data *data = comparison->data;
	const struct nccl_communicator *communicator =
		&data->communicators[comparison->communicator];
	uint32_t function = NCCL_INDEX_NONE;

	*ret_differs = false;
	for (uint32_t i = 0; i < communicator->member_count; i++) {
		uint32_t call = get_call(&data->members[communicator->members[i]], position);

		if (call == CALL_SHAPE_NONE ||
		    !member_can_be_compared(data, communicator->members[i]))
			continue;
		if (function == NCCL_INDEX_NONE)
			function = data->call_shapes[call].function;
		*ret_differs |= function != data->call_shapes[call].function;
	}
	return function;
}

/* NCCL counts the calls of each function. Up to the first place where ranks call different
 * functions, calls with the same number are at the same place and run together; behind it nobody
 * knows. */
static int set_sequences_in_doubt(const struct call_comparison *comparison)
{
	struct nccl_data *data = comparison->data;
	struct id_map *map = &nccl_get_private(data)->sequences_in_doubt;
	uint64_t key = (uint64_t)comparison->communicator << FUNCTIONS_IN_A_KEY_BITS;
	size_t first = 0;
	bool differs = false;
	int result = 0;

	while (first < comparison->count) {
		get_function_at(comparison, first, &differs);
		if (differs)
			break;
		first++;
	}
	if (!differs)
		return 0;
	for (uint32_t function = 0; result == 0 && function < data->function_count; function++)
		result = id_map_set(map, key | function, 0);
	for (size_t i = 0; result == 0 && i < first; i++) {
		uint32_t function = get_function_at(comparison, i, &differs);

		if (function != NCCL_INDEX_NONE)
			result = id_map_set(map, key | function,
					    id_map_get(map, key | function) + 1);
	}
	data->communicators[comparison->communicator].has_differing_calls = true;
	return result;
}

static int compare_calls_of_communicator(struct nccl_data *data, uint32_t index)
{
	struct call_comparison comparison = {.data = data, .communicator = index};
	const struct nccl_communicator *communicator = &data->communicators[index];
	uint32_t known = data->differing_call_count;
	int result = 0;

	for (uint32_t i = 0; i < communicator->member_count; i++) {
		size_t count = data->members[communicator->members[i]].call_count;

		comparison.count = count > comparison.count ? count : comparison.count;
	}
	comparison.majority = calloc(comparison.count + 1, sizeof(*comparison.majority));
	if (!comparison.majority)
		return -ENOMEM;
	for (size_t i = 0; i < comparison.count; i++)
		comparison.majority[i] = find_majority_call(data, communicator, i);
	for (uint32_t i = 0; result == 0 && i < communicator->member_count; i++) {
		if (member_can_be_compared(data, communicator->members[i]))
			result = compare_calls_of_member(&comparison, communicator->members[i]);
	}
	if (result == 0)
		result = find_disputed_call(&comparison);
	if (result == 0 && (data->differing_call_count > known || known == DIFFERING_CALLS_MAX))
		result = set_sequences_in_doubt(&comparison);
	free(comparison.majority);
	return result;
}

int nccl_find_differing_calls(struct nccl_data *data)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->communicator_count; i++) {
		if (data->communicators[i].member_count > 1)
			result = compare_calls_of_communicator(data, i);
	}
	for (uint32_t i = 0; i < data->member_count; i++) {
		free(data->members[i].calls);
		data->members[i].calls = NULL;
		data->members[i].call_count = 0;
	}
	return result;
}

uint64_t nccl_get_first_sequence_in_doubt(const struct nccl_data *data, uint32_t communicator,
					  uint32_t function)
{
	uint32_t count;

	if (!data->communicators[communicator].has_differing_calls)
		return UINT64_MAX;
	count = id_map_get(&nccl_get_private(data)->sequences_in_doubt,
			   (uint64_t)communicator << FUNCTIONS_IN_A_KEY_BITS | function);
	return count == ID_MAP_NONE ? 0 : count;
}

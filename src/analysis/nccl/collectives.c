/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of collectives; see collectives.h.
 */
#include "analysis/nccl/collectives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/private.h"

static size_t hash_collective_to_slot(const struct nccl_joined_collectives *joined,
				      uint32_t communicator, uint32_t function, uint64_t sequence)
{
	uint64_t hash = id_map_hash_key(((uint64_t)communicator << 32 | function) + 1) ^
			id_map_hash_key(~sequence);

	return (size_t)id_map_hash_key(hash) & (joined->slot_count - 1);
}

static int grow_collective_slots(struct nccl_joined_collectives *joined)
{
	size_t count = joined->slot_count ? joined->slot_count * 2 : 1024;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(joined->slots);
	joined->slots = slots;
	joined->slot_count = count;
	for (uint32_t i = 0; i < joined->count; i++) {
		struct nccl_collective *collective = &joined->collectives[i];
		size_t slot = hash_collective_to_slot(joined, collective->communicator,
						      collective->function, collective->sequence);

		collective->next = slots[slot];
		slots[slot] = i + 1;
	}
	return 0;
}

struct nccl_collective *nccl_find_collective(const struct nccl_joined_collectives *joined,
					     uint32_t communicator, uint32_t function,
					     uint64_t sequence)
{
	uint32_t at = joined->slot_count ? joined->slots[hash_collective_to_slot(
						   joined, communicator, function, sequence)]
					 : 0;

	while (at) {
		struct nccl_collective *collective = &joined->collectives[at - 1];

		if (collective->communicator == communicator && collective->function == function &&
		    collective->sequence == sequence)
			return collective;
		at = collective->next;
	}
	return NULL;
}

struct nccl_collective *nccl_find_or_add_collective(struct nccl_joined_collectives *joined,
						    uint32_t communicator, uint32_t function,
						    uint64_t sequence)
{
	struct nccl_collective *found =
		nccl_find_collective(joined, communicator, function, sequence);
	size_t slot;

	if (found)
		return found;
	if ((joined->count >= joined->slot_count && grow_collective_slots(joined) < 0) ||
	    joined->count >= UINT32_MAX - 1 ||
	    array_reserve_one_more((void **)&joined->collectives, &joined->capacity, joined->count,
				   sizeof(*joined->collectives)) < 0)
		return NULL;
	slot = hash_collective_to_slot(joined, communicator, function, sequence);
	found = &joined->collectives[joined->count];
	*found = (struct nccl_collective){.communicator = communicator,
					  .function = function,
					  .sequence = sequence,
					  .arguments_from_member = NCCL_INDEX_NONE,
					  .differing_arguments_member = NCCL_INDEX_NONE,
					  .problem = NCCL_INDEX_NONE,
					  .next = joined->slots[slot]};
	joined->slots[slot] = (uint32_t)++joined->count;
	return found;
}

static int compare_collectives_by_sequence(const void *left, const void *right)
{
	const struct nccl_collective *a = left, *b = right;

	if (a->communicator != b->communicator)
		return a->communicator < b->communicator ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

void nccl_sort_collectives(struct nccl_joined_collectives *joined)
{
	if (joined->count > 1)
		qsort(joined->collectives, joined->count, sizeof(*joined->collectives),
		      compare_collectives_by_sequence);
	if (joined->slot_count)
		memset(joined->slots, 0, joined->slot_count * sizeof(*joined->slots));
	for (uint32_t i = 0; i < joined->count; i++) {
		struct nccl_collective *collective = &joined->collectives[i];
		size_t slot = hash_collective_to_slot(joined, collective->communicator,
						      collective->function, collective->sequence);

		collective->next = joined->slots[slot];
		joined->slots[slot] = i + 1;
	}
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t nccl_hash_operation_arguments(const struct nccl_data *data,
				       const struct nccl_operation_view *view)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) + (uint32_t)view->record->root;

	return hash_text(hash,
			 nccl_get_interned_name(data, view->process, view->record->data_type));
}

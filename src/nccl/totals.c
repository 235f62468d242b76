/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See totals.h. A table of open addressing leads to the records.
 */
#include "nccl/totals.h"

#include <stddef.h>
#include <string.h>

#include "nccl/completion.h"
#include "nccl/options.h"
#include "nccl/store.h"

#define TOTALS_TABLE_SLOT_COUNT                                                                    \
	16384u /* keys; far more than communicators with functions and sizes there are */

static struct nccl_total *totals_by_key_hash_table[TOTALS_TABLE_SLOT_COUNT];
static struct nccl_total *totals_by_number[TOTALS_TABLE_SLOT_COUNT];
static uint32_t recorded_total_count;
static struct nccl_total *forgotten_totals[TOTALS_TABLE_SLOT_COUNT / 2];
static uint32_t forgotten_total_count;
static _Atomic uint64_t totals_current_chunk_word;

static uint8_t bytes_to_size_class(uint64_t bytes)
{
	return bytes ? (uint8_t)(64 - __builtin_clzll(bytes)) : 0;
}

/* The record of a communicator that was given back, or a new one. */
static struct store_record_slot take_total_record(void)
{
	struct store_record_slot place = {0, NULL, 0};

	if (forgotten_total_count) {
		place.record = forgotten_totals[--forgotten_total_count];
		place.id = ((struct nccl_total *)place.record)->id;
		__atomic_store_n(&((struct nccl_total *)place.record)->id, 0, __ATOMIC_RELEASE);
		memset((uint64_t *)place.record + 1, 0,
		       sizeof(struct nccl_total) - sizeof(uint64_t));
		return place;
	}
	if (recorded_total_count < TOTALS_TABLE_SLOT_COUNT / 2)
		place = store_take_record_slot(&totals_current_chunk_word, NCCL_CHUNK_TOTALS, 0);
	return place;
}

static struct nccl_total *add_total_record(const struct nccl_operation *operation)
{
	struct store_record_slot place = take_total_record();
	struct nccl_total *total;

	if (!place.id)
		return NULL;
	total = place.record;
	total->communicator = operation->communicator;
	total->function = operation->function;
	total->size_class = bytes_to_size_class(operation->bytes);
	total->kind = operation->kind;
	__atomic_store_n(&total->id, place.id, __ATOMIC_RELEASE);
	totals_by_number[recorded_total_count++] = total;
	return total;
}

static uint32_t hash_total_key(uint32_t communicator, uint8_t function, uint8_t size_class,
			       uint8_t kind)
{
	return (communicator * 2654435761u ^ function * 40503u ^ size_class * 977u ^ kind * 131u) %
	       TOTALS_TABLE_SLOT_COUNT;
}

static struct nccl_total *find_or_add_total(const struct nccl_operation *operation)
{
	uint8_t size = bytes_to_size_class(operation->bytes);
	uint32_t at =
		hash_total_key(operation->communicator, operation->function, size, operation->kind);

	for (; totals_by_key_hash_table[at]; at = (at + 1) % TOTALS_TABLE_SLOT_COUNT) {
		const struct nccl_total *total = totals_by_key_hash_table[at];

		if (total->communicator == operation->communicator &&
		    total->function == operation->function && total->size_class == size &&
		    total->kind == operation->kind)
			return totals_by_key_hash_table[at];
	}
	totals_by_key_hash_table[at] = add_total_record(operation);
	return totals_by_key_hash_table[at];
}

uint64_t totals_get_operation_gpu_ns(const struct nccl_operation *operation)
{
	uint64_t start = RELAXED_LOAD(operation->gpu_start),
		 stop = RELAXED_LOAD(operation->gpu_stop), ticks;

	if (!start || stop <= start)
		return 0;
	ticks = stop - start;
	if (RELAXED_LOAD(store.header->gpu_clock) != NCCL_GPU_CLOCK_TICKS)
		return ticks;
	return (uint64_t)((double)ticks * 1e9 / (double)options.gpu_clock_hz);
}

/* Below 4 us, 8 us, 16 us ... */
static unsigned ns_to_duration_bucket(uint64_t ns)
{
	unsigned class = 0;

	while (class < 15 && ns >= 4000ull << class)
		class ++;
	return class;
}

static void add_gpu_duration(struct nccl_total *total, const struct nccl_operation *operation,
			     uint64_t ns)
{
	RELAXED_STORE(total->timed, total->timed + 1);
	RELAXED_STORE(total->timed_bytes, total->timed_bytes + operation->bytes);
	RELAXED_STORE(total->gpu_ns, total->gpu_ns + ns);
	if (!total->gpu_ns_minimum || ns < total->gpu_ns_minimum)
		RELAXED_STORE(total->gpu_ns_minimum, ns);
	if (ns > total->gpu_ns_maximum)
		RELAXED_STORE(total->gpu_ns_maximum, ns);
	RELAXED_STORE(total->buckets[ns_to_duration_bucket(ns)],
		      total->buckets[ns_to_duration_bucket(ns)] + 1);
}

void totals_add_operation(const struct nccl_operation *operation)
{
	struct nccl_total *total = find_or_add_total(operation);
	uint32_t flags = RELAXED_LOAD(operation->flags);
	uint64_t ns = totals_get_operation_gpu_ns(operation), begin, end;

	if (!total)
		return;
	RELAXED_STORE(total->operations, total->operations + 1);
	RELAXED_STORE(total->bytes, total->bytes + operation->bytes);
	RELAXED_STORE(total->batched, total->batched + !!(flags & NCCL_OPERATION_BATCHED));
	RELAXED_STORE(total->aliased, total->aliased + !!(flags & NCCL_OPERATION_ALIASED));
	RELAXED_STORE(total->enqueue_only,
		      total->enqueue_only + !!(flags & NCCL_OPERATION_ENQUEUE_ONLY));
	RELAXED_STORE(total->incomplete, total->incomplete + (RELAXED_LOAD(operation->state) ==
							      NCCL_OPERATION_INCOMPLETE));
	RELAXED_STORE(total->network, total->network + !!(flags & NCCL_OPERATION_NETWORK));
	begin = RELAXED_LOAD(operation->network_start);
	end = RELAXED_LOAD(operation->network_stop);
	if (begin && end > begin)
		RELAXED_STORE(total->network_ns,
			      total->network_ns + completion_ticks_to_ns(end - begin));
	if (ns && RELAXED_LOAD(operation->state) == NCCL_OPERATION_DONE &&
	    !(flags & (NCCL_OPERATION_BATCHED | NCCL_OPERATION_ALIASED)))
		add_gpu_duration(total, operation, ns);
}

const struct nccl_total *totals_get_by_number(uint32_t number)
{
	return number < recorded_total_count ? totals_by_number[number] : NULL;
}

/* Open addressing has no holes: the table is made again. */
static void rebuild_totals_table(void)
{
	memset(totals_by_key_hash_table, 0, sizeof(totals_by_key_hash_table));
	for (uint32_t i = 0; i < recorded_total_count; i++) {
		struct nccl_total *total = totals_by_number[i];
		uint32_t at = hash_total_key(total->communicator, total->function,
					     total->size_class, total->kind);

		while (totals_by_key_hash_table[at])
			at = (at + 1) % TOTALS_TABLE_SLOT_COUNT;
		totals_by_key_hash_table[at] = total;
	}
}

void totals_forget_communicator(uint32_t creation)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < recorded_total_count; i++) {
		if (totals_by_number[i]->communicator == creation)
			forgotten_totals[forgotten_total_count++] = totals_by_number[i];
		else
			totals_by_number[kept++] = totals_by_number[i];
	}
	if (kept == recorded_total_count)
		return;
	recorded_total_count = kept;
	rebuild_totals_table();
}

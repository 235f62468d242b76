/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See totals.h. A table of open addressing leads to the records.
 */
#include "nccl/totals.h"

#include <stddef.h>

#include "nccl/options.h"
#include "nccl/sealing.h"
#include "nccl/store.h"

#define TABLE 16384u /* keys; far more than communicators with functions and sizes there are */

static struct nccl_total *table[TABLE];
static struct nccl_total *in_order[TABLE];
static uint32_t count;
static _Atomic uint64_t chunk;

static uint8_t size_class(uint64_t bytes)
{
	return bytes ? (uint8_t)(64 - __builtin_clzll(bytes)) : 0;
}

static struct nccl_total *add_record(const struct nccl_operation *operation)
{
	struct store_place place = {0, NULL, 0};
	struct nccl_total *total;

	if (count < TABLE / 2)
		place = store_take(&chunk, NCCL_CHUNK_TOTALS, 0);
	if (!place.id)
		return NULL;
	total = place.record;
	total->communicator = operation->communicator;
	total->function = operation->function;
	total->size_class = size_class(operation->bytes);
	total->kind = operation->kind;
	__atomic_store_n(&total->id, place.id, __ATOMIC_RELEASE);
	in_order[count++] = total;
	return total;
}

static struct nccl_total *find(const struct nccl_operation *operation)
{
	uint8_t size = size_class(operation->bytes);
	uint32_t at = (operation->communicator * 2654435761u ^ operation->function * 40503u ^
		       size * 977u ^ operation->kind * 131u) %
		      TABLE;

	for (; table[at]; at = (at + 1) % TABLE) {
		const struct nccl_total *total = table[at];

		if (total->communicator == operation->communicator &&
		    total->function == operation->function && total->size_class == size &&
		    total->kind == operation->kind)
			return table[at];
	}
	table[at] = add_record(operation);
	return table[at];
}

uint64_t totals_gpu_ns(const struct nccl_operation *operation)
{
	uint64_t start = GET(operation->gpu_start), stop = GET(operation->gpu_stop), ticks;

	if (!start || stop <= start)
		return 0;
	ticks = stop - start;
	if (GET(store.header->gpu_clock) != NCCL_GPU_CLOCK_TICKS)
		return ticks;
	return (uint64_t)((double)ticks * 1e9 / (double)options.gpu_clock_hz);
}

/* Below 4 us, 8 us, 16 us ... */
static unsigned bucket(uint64_t ns)
{
	unsigned class = 0;

	while (class < 15 && ns >= 4000ull << class)
		class ++;
	return class;
}

static void add_duration(struct nccl_total *total, const struct nccl_operation *operation,
			 uint64_t ns)
{
	SET(total->timed, total->timed + 1);
	SET(total->timed_bytes, total->timed_bytes + operation->bytes);
	SET(total->gpu_ns, total->gpu_ns + ns);
	if (!total->gpu_ns_minimum || ns < total->gpu_ns_minimum)
		SET(total->gpu_ns_minimum, ns);
	if (ns > total->gpu_ns_maximum)
		SET(total->gpu_ns_maximum, ns);
	SET(total->buckets[bucket(ns)], total->buckets[bucket(ns)] + 1);
}

void totals_add(const struct nccl_operation *operation)
{
	struct nccl_total *total = find(operation);
	uint32_t flags = GET(operation->flags);
	uint64_t ns = totals_gpu_ns(operation), begin, end;

	if (!total)
		return;
	SET(total->operations, total->operations + 1);
	SET(total->bytes, total->bytes + operation->bytes);
	SET(total->batched, total->batched + !!(flags & NCCL_OPERATION_BATCHED));
	SET(total->aliased, total->aliased + !!(flags & NCCL_OPERATION_ALIASED));
	SET(total->enqueue_only, total->enqueue_only + !!(flags & NCCL_OPERATION_ENQUEUE_ONLY));
	SET(total->incomplete,
	    total->incomplete + (GET(operation->state) == NCCL_OPERATION_INCOMPLETE));
	SET(total->network, total->network + !!(flags & NCCL_OPERATION_NETWORK));
	begin = GET(operation->network_start);
	end = GET(operation->network_stop);
	if (begin && end > begin)
		SET(total->network_ns, total->network_ns + sealing_ns(end - begin));
	if (ns && GET(operation->state) == NCCL_OPERATION_DONE &&
	    !(flags & (NCCL_OPERATION_BATCHED | NCCL_OPERATION_ALIASED)))
		add_duration(total, operation, ns);
}

const struct nccl_total *totals_get(uint32_t number)
{
	return number < count ? in_order[number] : NULL;
}

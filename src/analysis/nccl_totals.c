/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The plugin's own sums to ours. They count operations that its ring has overwritten since, so
 * where that happened they stand for all operations that the plugin was done with.
 */
#include "analysis/nccl_private.h"

/* Bucket n holds what took less than 2^n times this, and no less than half of that. */
#define FIRST_BUCKET_NS 4000

static void add_buckets(struct nccl_tally *tally, const struct nccl_total *total,
			uint64_t around_ns)
{
	for (unsigned i = 0; i < 16; i++) {
		uint64_t middle = ((uint64_t)FIRST_BUCKET_NS << i) * 3 / 4;

		nccl_tally_add_durations(tally, middle + around_ns, total->buckets[i]);
	}
}

static uint64_t multiplied(uint64_t value, double by)
{
	double product = (double)value * by;

	return product < 1.8e19 ? (uint64_t)product : UINT64_MAX;
}

void nccl_total_add(struct nccl_tally *tally, const struct nccl_total *total,
		    enum nccl_function function, uint32_t ranks, uint64_t around_ns)
{
	uint64_t mean = total->operations ? total->bytes / total->operations : 0, size;
	bool known = nccl_function_size(function, mean, ranks, &size);
	double by = known && mean ? (double)size / (double)mean : 1;
	double factor = nccl_function_bus_factor(function, ranks);
	uint64_t gpu_ns = total->gpu_ns + total->timed * around_ns;
	struct nccl_size_class *sizes = &tally->sizes[nccl_size_class_of(known ? size : mean)];

	if (total->timed &&
	    (!tally->timed || total->gpu_ns_minimum + around_ns < tally->shortest_ns))
		tally->shortest_ns = total->gpu_ns_minimum + around_ns;
	if (total->timed && total->gpu_ns_maximum + around_ns > tally->longest_ns)
		tally->longest_ns = total->gpu_ns_maximum + around_ns;
	tally->operations += total->operations;
	tally->timed += total->timed;
	tally->ns += gpu_ns;
	tally->batched += total->batched;
	tally->aliased += total->aliased;
	tally->enqueue_only += total->enqueue_only;
	tally->incomplete += total->incomplete;
	add_buckets(tally, total, around_ns);
	if (!total->timed && total->network) {
		tally->timed += total->network;
		tally->by_network += total->network;
		tally->ns += total->network_ns;
	}
	if (!known) {
		tally->unsized += total->operations;
		return;
	}
	tally->bytes += multiplied(total->bytes, by);
	tally->sized_ns += gpu_ns;
	tally->timed_bytes += multiplied(total->timed_bytes, by);
	tally->bus_bytes += (double)total->timed_bytes * by * factor;
	sizes->operations += total->operations;
	sizes->timed += total->timed;
	sizes->ns += gpu_ns;
	sizes->timed_bytes += multiplied(total->timed_bytes, by);
	sizes->bus_bytes += (double)total->timed_bytes * by * factor;
}

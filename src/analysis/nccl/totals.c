/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The plugin's own sums to ours. They count operations that its ring has overwritten since, so
 * where that happened they stand for all operations that the plugin was done with.
 */
#include "analysis/nccl/private.h"

/* Bucket n holds what took less than 2^n times this, and no less than half of that. */
#define FIRST_BUCKET_LIMIT_NS 4000
#define DURATION_BUCKET_COUNT 16

static uint64_t clamp_ns_to_bucket_limits(uint64_t ns, unsigned bucket,
					  const struct nccl_total *total)
{
	uint64_t from = bucket ? (uint64_t)FIRST_BUCKET_LIMIT_NS << (bucket - 1) : 0;
	uint64_t to = bucket < DURATION_BUCKET_COUNT - 1 ? (uint64_t)FIRST_BUCKET_LIMIT_NS << bucket
							 : UINT64_MAX;

	from = total->gpu_ns_minimum > from ? total->gpu_ns_minimum : from;
	to = total->gpu_ns_maximum < to ? total->gpu_ns_maximum : to;
	return ns < from ? from : ns < to ? ns : to;
}

/* The middle, for want of anything better. */
static uint64_t compute_bucket_middle_ns(unsigned bucket, const struct nccl_total *total)
{
	return clamp_ns_to_bucket_limits(((uint64_t)FIRST_BUCKET_LIMIT_NS << bucket) * 3 / 4,
					 bucket, total);
}

/* All that one bucket holds gets one duration: in the fullest that by which the sum comes out. */
static void add_buckets_to_tally(struct nccl_operation_tally *tally, const struct nccl_total *total,
				 uint64_t around_ns)
{
	uint64_t others_ns = 0, own_ns, count;
	unsigned fullest = 0;

	for (unsigned i = 1; i < DURATION_BUCKET_COUNT; i++) {
		if (total->buckets[i] > total->buckets[fullest])
			fullest = i;
	}
	count = total->buckets[fullest];
	if (!count)
		return;
	for (unsigned i = 0; i < DURATION_BUCKET_COUNT; i++) {
		uint64_t middle = compute_bucket_middle_ns(i, total);

		if (i == fullest || !total->buckets[i])
			continue;
		others_ns += total->buckets[i] * middle;
		nccl_tally_add_durations(tally, middle + around_ns, total->buckets[i]);
	}
	own_ns = total->gpu_ns > others_ns ? (total->gpu_ns - others_ns) / count : 0;
	nccl_tally_add_durations(
		tally, clamp_ns_to_bucket_limits(own_ns, fullest, total) + around_ns, count);
}

static uint64_t multiply_clamped(uint64_t value, double by)
{
	double product = (double)value * by;

	return product < 1.8e19 ? (uint64_t)product : UINT64_MAX;
}

void nccl_tally_add_total_record(struct nccl_operation_tally *tally, const struct nccl_total *total,
				 enum nccl_function_kind function, uint32_t ranks,
				 uint64_t around_ns)
{
	uint64_t mean = total->operations ? total->bytes / total->operations : 0, size;
	bool known = nccl_function_compute_message_size(function, mean, ranks, &size);
	double by = known && mean ? (double)size / (double)mean : 1;
	double factor = nccl_function_get_bus_bandwidth_factor(function, ranks);
	uint64_t gpu_ns = total->gpu_ns + total->timed * around_ns;
	struct nccl_size_class_sums *sizes =
		&tally->sizes[nccl_bytes_to_size_class(known ? size : mean)];

	if (total->timed &&
	    (!tally->timed || total->gpu_ns_minimum + around_ns < tally->shortest_duration_ns))
		tally->shortest_duration_ns = total->gpu_ns_minimum + around_ns;
	if (total->timed && total->gpu_ns_maximum + around_ns > tally->longest_duration_ns)
		tally->longest_duration_ns = total->gpu_ns_maximum + around_ns;
	tally->operations += total->operations;
	tally->timed += total->timed;
	tally->ns += gpu_ns;
	tally->batched_operation_count += total->batched;
	tally->aliased_operation_count += total->aliased;
	tally->enqueue_only_operation_count += total->enqueue_only;
	tally->incomplete += total->incomplete;
	add_buckets_to_tally(tally, total, around_ns);
	if (!total->timed && total->network) {
		tally->timed += total->network;
		tally->timed_by_network_count += total->network;
		tally->ns += total->network_ns;
	}
	if (!known) {
		tally->unsized += total->operations;
		return;
	}
	tally->bytes += multiply_clamped(total->bytes, by);
	tally->known_size_duration_ns += gpu_ns;
	tally->timed_bytes += multiply_clamped(total->timed_bytes, by);
	tally->bus_bytes += (double)total->timed_bytes * by * factor;
	sizes->operations += total->operations;
	sizes->timed += total->timed;
	sizes->ns += gpu_ns;
	sizes->timed_bytes += multiply_clamped(total->timed_bytes, by);
	sizes->bus_bytes += (double)total->timed_bytes * by * factor;
}

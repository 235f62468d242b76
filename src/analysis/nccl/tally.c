/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums of operations; see tally.h.
 */
#include "analysis/nccl/tally.h"

#include <string.h>

static const char *const nccl_function_names[NCCL_FUNCTION_COUNT] = {
	[NCCL_FUNCTION_ALL_REDUCE] = "AllReduce",
	[NCCL_FUNCTION_ALL_GATHER] = "AllGather",
	[NCCL_FUNCTION_REDUCE_SCATTER] = "ReduceScatter",
	[NCCL_FUNCTION_BROADCAST] = "Broadcast",
	[NCCL_FUNCTION_REDUCE] = "Reduce",
	[NCCL_FUNCTION_ALL_TO_ALL] = "AlltoAll",
	[NCCL_FUNCTION_GATHER] = "Gather",
	[NCCL_FUNCTION_SCATTER] = "Scatter",
	[NCCL_FUNCTION_SEND] = "Send",
	[NCCL_FUNCTION_RECV] = "Recv",
};

enum nccl_function_kind nccl_name_to_function(const char *name)
{
	for (unsigned i = 1; i < NCCL_FUNCTION_COUNT; i++) {
		if (!strcmp(nccl_function_names[i], name))
			return (enum nccl_function_kind)i;
	}
	return NCCL_FUNCTION_OTHER;
}

bool nccl_function_waits_for_all_ranks(enum nccl_function_kind function)
{
	return function == NCCL_FUNCTION_ALL_REDUCE || function == NCCL_FUNCTION_ALL_GATHER ||
	       function == NCCL_FUNCTION_REDUCE_SCATTER || function == NCCL_FUNCTION_ALL_TO_ALL;
}

/* What a rank gives or gets is a part of what is counted. */
static bool function_splits_data(enum nccl_function_kind function)
{
	return function == NCCL_FUNCTION_ALL_GATHER || function == NCCL_FUNCTION_REDUCE_SCATTER ||
	       function == NCCL_FUNCTION_ALL_TO_ALL || function == NCCL_FUNCTION_GATHER ||
	       function == NCCL_FUNCTION_SCATTER;
}

bool nccl_function_compute_message_size(enum nccl_function_kind function, uint64_t bytes,
					uint32_t ranks, uint64_t *ret)
{
	*ret = bytes;
	if (!function_splits_data(function))
		return function != NCCL_FUNCTION_OTHER;
	return ranks != 0 && !__builtin_mul_overflow(bytes, (uint64_t)ranks, ret);
}

double nccl_function_get_bus_bandwidth_factor(enum nccl_function_kind function, uint32_t ranks)
{
	double others = (double)ranks - 1;

	switch (function) {
	case NCCL_FUNCTION_OTHER:
		return 0;
	case NCCL_FUNCTION_ALL_REDUCE:
		return ranks ? 2 * others / (double)ranks : 0;
	case NCCL_FUNCTION_BROADCAST:
	case NCCL_FUNCTION_REDUCE:
	case NCCL_FUNCTION_SEND:
	case NCCL_FUNCTION_RECV:
		return 1;
	default:
		return ranks ? others / (double)ranks : 0;
	}
}

unsigned nccl_bytes_to_size_class(uint64_t bytes)
{
	return bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
}

/* Four classes each time it doubles. */
static unsigned duration_to_class(uint64_t ns)
{
	unsigned shift;

	if (ns < 4)
		return (unsigned)ns;
	shift = 61 - (unsigned)__builtin_clzll(ns);
	return (shift + 1) * 4 + (unsigned)(ns >> shift & 3);
}

/* The middle of a class. */
static uint64_t duration_class_to_middle_ns(unsigned class)
{
	unsigned shift = class / 4 - 1;

	if (class < 4)
		return class;
	return ((uint64_t)(4 | class % 4) << shift) + (((uint64_t)1 << shift) >> 1);
}

void nccl_tally_add_operation(struct nccl_operation_tally *tally,
			      const struct nccl_timed_operation *operation)
{
	struct nccl_size_class_sums *sizes =
		&tally->sizes[nccl_bytes_to_size_class(operation->size_bytes)];

	tally->operations++;
	if (operation->is_size_known) {
		tally->bytes += operation->size_bytes;
		sizes->operations++;
	} else {
		tally->unsized++;
	}
	if (!operation->ns)
		return;
	if (!tally->timed || operation->ns < tally->shortest_duration_ns)
		tally->shortest_duration_ns = operation->ns;
	if (operation->ns > tally->longest_duration_ns)
		tally->longest_duration_ns = operation->ns;
	tally->timed++;
	tally->timed_by_network_count += operation->is_timed_by_network;
	tally->ns += operation->ns;
	tally->operation_count_by_duration_class[duration_to_class(operation->ns)]++;
	if (!operation->is_size_known)
		return;
	tally->known_size_duration_ns += operation->ns;
	tally->timed_bytes += operation->size_bytes;
	tally->bus_bytes += (double)operation->size_bytes * operation->bus_factor;
	sizes->timed++;
	sizes->ns += operation->ns;
	sizes->timed_bytes += operation->size_bytes;
	sizes->bus_bytes += (double)operation->size_bytes * operation->bus_factor;
}

void nccl_tally_add_durations(struct nccl_operation_tally *tally, uint64_t ns, uint64_t count)
{
	tally->operation_count_by_duration_class[duration_to_class(ns)] += count;
}

static void merge_size_class(struct nccl_size_class_sums *to,
			     const struct nccl_size_class_sums *from)
{
	to->operations += from->operations;
	to->timed += from->timed;
	to->timed_bytes += from->timed_bytes;
	to->ns += from->ns;
	to->bus_bytes += from->bus_bytes;
}

void nccl_tally_merge(struct nccl_operation_tally *tally, const struct nccl_operation_tally *other)
{
	if (other->timed &&
	    (!tally->timed || other->shortest_duration_ns < tally->shortest_duration_ns))
		tally->shortest_duration_ns = other->shortest_duration_ns;
	if (other->longest_duration_ns > tally->longest_duration_ns)
		tally->longest_duration_ns = other->longest_duration_ns;
	tally->operations += other->operations;
	tally->bytes += other->bytes;
	tally->timed += other->timed;
	tally->timed_bytes += other->timed_bytes;
	tally->ns += other->ns;
	tally->known_size_duration_ns += other->known_size_duration_ns;
	tally->bus_bytes += other->bus_bytes;
	tally->timed_by_network_count += other->timed_by_network_count;
	tally->batched_operation_count += other->batched_operation_count;
	tally->aliased_operation_count += other->aliased_operation_count;
	tally->enqueue_only_operation_count += other->enqueue_only_operation_count;
	tally->incomplete += other->incomplete;
	tally->in_flight_operation_count += other->in_flight_operation_count;
	tally->unsized += other->unsized;
	for (unsigned i = 0; i < NCCL_SIZE_CLASS_COUNT; i++)
		merge_size_class(&tally->sizes[i], &other->sizes[i]);
	for (unsigned i = 0; i < NCCL_DURATION_CLASS_COUNT; i++)
		tally->operation_count_by_duration_class[i] +=
			other->operation_count_by_duration_class[i];
}

uint64_t nccl_tally_find_duration_quantile(const struct nccl_operation_tally *tally, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)tally->timed), seen = 0, found;

	if (!tally->timed)
		return 0;
	if (wanted >= tally->timed)
		return tally->longest_duration_ns;
	for (unsigned i = 0; i < NCCL_DURATION_CLASS_COUNT; i++) {
		seen += tally->operation_count_by_duration_class[i];
		if (seen <= wanted)
			continue;
		found = duration_class_to_middle_ns(i);
		if (found < tally->shortest_duration_ns)
			return tally->shortest_duration_ns;
		return found < tally->longest_duration_ns ? found : tally->longest_duration_ns;
	}
	return tally->longest_duration_ns;
}

double nccl_compute_algorithm_bandwidth(uint64_t bytes, uint64_t ns)
{
	return ns ? (double)bytes / (double)ns : 0;
}

double nccl_compute_bus_bandwidth(double bus_bytes, uint64_t ns)
{
	return ns ? bus_bytes / (double)ns : 0;
}

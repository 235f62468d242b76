/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums of operations: how many, how long, how fast; by size of message as well.
 *
 * Bandwidths are those of nccl-tests (its doc/PERFORMANCE.md): the algorithm's is size by time,
 * the bus's is what the slowest link must have carried for that, whatever the number of ranks.
 */
#ifndef KYMO_ANALYSIS_NCCL_TALLY_H
#define KYMO_ANALYSIS_NCCL_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#define NCCL_SIZE_CLASS_COUNT     65 /* n: 2^(n-1) <= bytes < 2^n; 0: no bytes */
#define NCCL_DURATION_CLASS_COUNT (64 * 4)

enum nccl_function_kind {
	NCCL_FUNCTION_OTHER, /* no formula is known */
	NCCL_FUNCTION_ALL_REDUCE,
	NCCL_FUNCTION_ALL_GATHER,
	NCCL_FUNCTION_REDUCE_SCATTER,
	NCCL_FUNCTION_BROADCAST,
	NCCL_FUNCTION_REDUCE,
	NCCL_FUNCTION_ALL_TO_ALL,
	NCCL_FUNCTION_GATHER,
	NCCL_FUNCTION_SCATTER,
	NCCL_FUNCTION_SEND,
	NCCL_FUNCTION_RECV,
	NCCL_FUNCTION_COUNT
};

/* As NCCL calls them. */
enum nccl_function_kind nccl_name_to_function(const char *name);
/* Nobody leaves before everybody has entered. */
bool nccl_function_waits_for_all_ranks(enum nccl_function_kind function);
/* The size that nccl-tests counts, of what each rank gives or gets; false where it cannot be told,
 * because the number of ranks matters and is 0, not known. */
bool nccl_function_compute_message_size(enum nccl_function_kind function, uint64_t bytes,
					uint32_t ranks, uint64_t *ret);
/* Bus bandwidth by algorithm bandwidth; 0: not known. */
double nccl_function_get_bus_bandwidth_factor(enum nccl_function_kind function, uint32_t ranks);

unsigned nccl_bytes_to_size_class(uint64_t bytes);

struct nccl_size_class_sums {
	uint64_t operations, timed, timed_bytes, ns;
	double bus_bytes; /* of the timed ones */
};

struct nccl_operation_tally {
	uint64_t operations, bytes; /* sizes, where known */
	uint64_t timed, timed_bytes, ns, shortest_duration_ns, longest_duration_ns;
	uint64_t known_size_duration_ns; /* of the timed ones whose size is known */
	double bus_bytes;
	uint64_t timed_by_network_count; /* of the timed ones: from transfers, not from the GPU */
	uint64_t batched_operation_count, aliased_operation_count, enqueue_only_operation_count,
		incomplete, in_flight_operation_count, unsized;
	struct nccl_size_class_sums sizes[NCCL_SIZE_CLASS_COUNT];
	uint64_t operation_count_by_duration_class[NCCL_DURATION_CLASS_COUNT];
};

/* One operation that took `ns`; 0: not known. */
struct nccl_timed_operation {
	uint64_t size_bytes, ns;
	double bus_factor;
	bool is_size_known, is_timed_by_network;
};
void nccl_tally_add_operation(struct nccl_operation_tally *tally,
			      const struct nccl_timed_operation *operation);
/* What is known of durations by their class alone; nothing else is changed. */
void nccl_tally_add_durations(struct nccl_operation_tally *tally, uint64_t ns, uint64_t count);
void nccl_tally_merge(struct nccl_operation_tally *tally, const struct nccl_operation_tally *other);
/* A duration that `share` of the timed ones do not exceed, to 12 %. */
uint64_t nccl_tally_find_duration_quantile(const struct nccl_operation_tally *tally, double share);
/* GB/s; 0: nothing was timed. */
double nccl_compute_algorithm_bandwidth(uint64_t bytes, uint64_t ns);
double nccl_compute_bus_bandwidth(double bus_bytes, uint64_t ns);

#endif

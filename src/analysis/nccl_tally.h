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

#define NCCL_SIZE_CLASSES     65 /* n: 2^(n-1) <= bytes < 2^n; 0: no bytes */
#define NCCL_DURATION_CLASSES (64 * 4)

enum nccl_function {
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
enum nccl_function nccl_function_find(const char *name);
/* Nobody leaves before everybody has entered. */
bool nccl_function_joins_all(enum nccl_function function);
/* The size that nccl-tests counts, of what each rank gives or gets; false where it cannot be told,
 * because the number of ranks matters and is 0, not known. */
bool nccl_function_size(enum nccl_function function, uint64_t bytes, uint32_t ranks, uint64_t *ret);
/* Bus bandwidth by algorithm bandwidth; 0: not known. */
double nccl_function_bus_factor(enum nccl_function function, uint32_t ranks);

unsigned nccl_size_class_of(uint64_t bytes);

struct nccl_size_class {
	uint64_t operations, timed, timed_bytes, ns;
	double bus_bytes; /* of the timed ones */
};

struct nccl_tally {
	uint64_t operations, bytes; /* sizes, where known */
	uint64_t timed, timed_bytes, ns, shortest_ns, longest_ns;
	uint64_t sized_ns; /* of the timed ones whose size is known */
	double bus_bytes;
	uint64_t by_network; /* of the timed ones: from transfers, not from the GPU */
	uint64_t batched, aliased, enqueue_only, incomplete, in_flight, unsized;
	struct nccl_size_class sizes[NCCL_SIZE_CLASSES];
	uint64_t durations[NCCL_DURATION_CLASSES];
};

/* One operation that took `ns`; 0: not known. */
struct nccl_timed {
	uint64_t size_bytes, ns;
	double bus_factor;
	bool size_known, by_network;
};
void nccl_tally_add(struct nccl_tally *tally, const struct nccl_timed *operation);
/* What is known of durations by their class alone; nothing else is changed. */
void nccl_tally_add_durations(struct nccl_tally *tally, uint64_t ns, uint64_t count);
void nccl_tally_merge(struct nccl_tally *tally, const struct nccl_tally *other);
/* A duration that `share` of the timed ones do not exceed, to 12 %. */
uint64_t nccl_tally_quantile(const struct nccl_tally *tally, double share);
/* GB/s; 0: nothing was timed. */
double nccl_algorithm_bandwidth(uint64_t bytes, uint64_t ns);
double nccl_bus_bandwidth(double bus_bytes, uint64_t ns);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files of the NCCL plugin made by hand, in memory. Ticks are ns of CLOCK_MONOTONIC, which is
 * CLOCK_BOOTTIME here; what is not set is zero. Pointers to records stay valid until the end.
 */
#ifndef KYMO_TESTS_NCCL_FIXTURE_H
#define KYMO_TESTS_NCCL_FIXTURE_H

#include <stddef.h>

#include "kymo/nccl_records.h"

#define NCCL_FIXTURE_SIZE     (4u << 20)
#define NCCL_FIXTURE_REALTIME INT64_C(1700000000000000000) /* at boot of a usual host */

struct nccl_fixture {
	uint8_t *bytes;
	size_t size;
	struct nccl_file_header *header;
	uint32_t communicators;
	uint64_t ordinals[64];
};

/* A process that began at `start_ns`, on a host whose CLOCK_REALTIME was `realtime_ns` at boot. */
void nccl_fixture_init(struct nccl_fixture *fixture, uint32_t pid, const char *host,
		       uint64_t start_ns, int64_t realtime_ns);
void nccl_fixture_deinit(struct nccl_fixture *fixture);
uint8_t nccl_fixture_name(struct nccl_fixture *fixture, const char *name);
struct nccl_communicator_record *nccl_fixture_communicator(struct nccl_fixture *fixture,
							   uint64_t hash, int32_t ranks,
							   int32_t rank, const char *name);
/* ENQUEUED at `start_ns`, by the last communicator made. */
struct nccl_operation *nccl_fixture_operation(struct nccl_fixture *fixture,
					      struct nccl_communicator_record *communicator,
					      const char *function, uint64_t sequence,
					      uint64_t bytes, uint64_t start_ns);
/* ... that one channel of ran to the end, between two times of a GPU `gpu_ahead_ns` ahead. */
void nccl_fixture_run(struct nccl_fixture *fixture, struct nccl_operation *operation,
		      uint64_t begin_ns, uint64_t end_ns, int64_t gpu_ahead_ns);
struct nccl_event *nccl_fixture_event(struct nccl_fixture *fixture, uint32_t communicator,
				      enum nccl_kind kind, uint64_t parent, uint64_t start_ns);
/* Writes it to <directory>/spool/nccl-<pid>-0.nccl. */
void nccl_fixture_write(const struct nccl_fixture *fixture, const char *directory);

#endif

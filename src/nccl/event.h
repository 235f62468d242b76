/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One start of an event, whatever version of the API it came through: what the adapters (api_v*.c)
 * make of NCCL's descriptors. Members that the event's kind does not have are not set.
 */
#ifndef KYMO_NCCL_EVENT_H
#define KYMO_NCCL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "kymo/nccl_records.h"

struct plugin_event_start_arguments {
	uint8_t kind; /* enum nccl_kind */
	uint8_t api;
	int rank;
	void *parent;
	/* COLLECTIVE, P2P, CE_COLLECTIVE, COLLECTIVE_API, P2P_API; NULL: not told */
	const char *function, *data_type, *algorithm, *protocol;
	const char *communicator_name; /* v1-v3 */
	uint64_t communicator_hash;    /* v1-v3 */
	uint64_t sequence, count, traffic_bytes, user_tag;
	const void *send_buffer, *receive_buffer;
	void *group;
	uint8_t channel_count, warp_count;
	int root; /* P2P, PROXY_OP: the peer */
	/* COLLECTIVE_API, P2P_API, GROUP_API, KERNEL_LAUNCH */
	void *stream;
	bool is_captured;
	int depth;
	/* PROXY_OP; PROXY_STEP: step; KERNEL_CHANNEL, KERNEL_PHASE: channel */
	int pid, steps, chunk_bytes, step;
	uint8_t channel, phase;
	bool is_send;
	uint64_t gpu_timestamp;
	/* NET_PLUGIN */
	int64_t net_plugin_type_and_version;
	const void *net_plugin_data;
	/* CE_SYNC, CE_BATCH */
	bool complete, intra_batch;
	int ranks, operations;
	uint64_t bytes;
};

/* What comes with a state. */
struct event_state_arguments {
	bool known;        /* there were arguments */
	uint64_t bytes;    /* v1-v3 proxy operation, proxy step */
	int steps;         /* v1-v3 proxy operation */
	int appended;      /* proxy control */
	const void *data;  /* net plugin */
	uint64_t gpu_time; /* kernel channel, kernel phase */
};

#endif

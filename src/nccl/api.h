/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler plugin API as it is laid out in memory, versions 1 to 7. The text is ours; names
 * of the exported objects, order of members and offsets are NCCL's (each version's descriptor is
 * asserted offset by offset). A version's layout never changed between releases of NCCL.
 *
 * NCCL looks for the newest ncclProfiler_vN that it knows: 1 since 2.23, 2 since 2.24, 3 since
 * 2.26, 4 since 2.27, 5 since 2.28, 6 since 2.29, 7 since 2.31. All of them are exported.
 */
#ifndef KYMO_NCCL_API_H
#define KYMO_NCCL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ncclResult_t: only this one is ever returned. NCCL before 2.28 crashes on any other from init,
 * later ones go on calling with a NULL context. */
#define NCCL_SUCCESS 0

/* ncclDebugLogger_t, its levels and one of its flags. */
typedef void (*nccl_logger)(int level, unsigned long flags, const char *file, int line,
			    const char *format, ...);
enum { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3 };
#define NCCL_LOG_PROFILE 0x4000ul

/* ncclProfilerEventState_t */
enum nccl_event_state {
	NCCL_STATE_OP_FIRST = 0, /* v1-v3: 8 states of proxy operations */
	NCCL_STATE_OP_LAST = 7,
	NCCL_STATE_SEND_GPU_WAIT = 8,
	NCCL_STATE_SEND_WAIT = 9,
	NCCL_STATE_RECEIVE_WAIT = 10,
	NCCL_STATE_RECEIVE_FLUSH_WAIT = 11,
	NCCL_STATE_RECEIVE_GPU_WAIT = 12,
	NCCL_STATE_CONTROL_IDLE = 13,
	NCCL_STATE_CONTROL_ACTIVE = 14,
	NCCL_STATE_CONTROL_SLEEP = 15,
	NCCL_STATE_CONTROL_WAKEUP = 16,
	NCCL_STATE_CONTROL_APPEND = 17,
	NCCL_STATE_CONTROL_APPEND_END = 18,
	NCCL_STATE_OP_IN_PROGRESS = 19,
	NCCL_STATE_SEND_PEER_WAIT = 20,
	NCCL_STATE_NET_PLUGIN_UPDATE = 21,
	NCCL_STATE_KERNEL_CHANNEL_STOP = 22,
	NCCL_STATE_GROUP_START_API_STOP = 23,
	NCCL_STATE_GROUP_END_API_START = 24,
	NCCL_STATE_CE_FIRST = 25, /* in the enumeration, never sent */
	NCCL_STATE_CE_LAST = 30,
	NCCL_STATE_KERNEL_PHASE_STOP = 31
};

/* ---- parts that are the same in all versions ---- */

struct nccl_proxy_op_descriptor {
	int pid;
	uint8_t channel;
	int peer, steps, chunk_size, is_send;
};

struct nccl_proxy_step_descriptor {
	int step;
};

struct nccl_net_plugin_event_descriptor {
	int64_t id; /* low 16 bits version, then 1 InfiniBand, 2 socket */
	void *data;
};

struct nccl_kernel_channel_descriptor {
	uint8_t channel;
	uint64_t gpu_time; /* pTimer */
};

struct nccl_group_api_descriptor {
	bool captured;
	int depth;
};

struct nccl_kernel_launch_descriptor {
	void *stream;
};

struct nccl_ce_collective_descriptor {
	uint64_t sequence;
	const char *function;
	void const *send_buffer;
	void *receive_buffer;
	size_t count;
	int root;
	const char *data_type;
	const char *synchronisation;
	bool intra_batch;
	uint32_t batch_size, batches, ce_sequence;
	void *stream;
};

struct nccl_ce_sync_descriptor {
	bool complete;
	int ranks;
};

struct nccl_ce_batch_descriptor {
	int operations;
	size_t bytes;
	bool intra_batch;
};

/* What the net plugins of NCCL itself put into nccl_net_plugin_event_descriptor.data, version 1. */
struct nccl_infiniband_net_event_data {
	uint8_t type; /* 1: queue pair */
	uint8_t padding[7];
	int device;
	uint64_t work_id;
	int opcode, queue_pair;
	size_t length;
};

struct nccl_socket_net_event_data {
	uint8_t type; /* 1 */
	uint8_t padding[7];
	int descriptor, operation;
	size_t length;
};

#endif

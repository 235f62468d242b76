/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What NCCL says of an event, a structure for each version of its profiler API. Order of members
 * and offsets are NCCL's; the text is ours.
 */
#ifndef KYMO_NCCL_VERSIONS_DESCRIPTORS_H
#define KYMO_NCCL_VERSIONS_DESCRIPTORS_H

#include "nccl/api.h"

/* ---- v1: numbers instead of names ---- */

struct nccl_collective_v1 {
	const char *name;
	uint64_t hash, sequence;
	uint8_t function;
	void const *send_buffer;
	void *receive_buffer;
	size_t count;
	int root;
	uint8_t data_type;
	uint32_t operation;
	size_t traffic_bytes;
	uint8_t channels, warps, algorithm, protocol;
	int is_collnet, is_nvls;
};

struct nccl_p2p_v1 {
	const char *name;
	uint64_t hash;
	uint8_t function;
	void *buffer;
	uint8_t data_type;
	size_t count;
	int peer;
};

struct nccl_event_v1 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v1 collective;
		struct nccl_p2p_v1 p2p;
		struct nccl_proxy_op_descriptor proxy_op;
		struct nccl_proxy_step_descriptor proxy_step;
	};
};

/* v1 to v3 */
union nccl_state_v1 {
	struct {
		size_t bytes;
		int steps;
	} proxy_op;
	struct {
		int appended;
	} proxy_control;
};

/* ---- v2, v3 ---- */

struct nccl_collective_v2 {
	const char *name;
	uint64_t hash, sequence;
	const char *function;
	void const *send_buffer;
	void *receive_buffer;
	size_t count;
	int root;
	const char *data_type;
	size_t traffic_bytes;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_collective_v3 {
	const char *name;
	uint64_t hash, sequence;
	const char *function;
	void const *send_buffer;
	void *receive_buffer;
	size_t count;
	int root;
	const char *data_type;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_p2p_v2 {
	const char *name;
	uint64_t hash;
	const char *function;
	void *buffer;
	const char *data_type;
	size_t count;
	int peer;
};

struct nccl_event_v2 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v2 collective;
		struct nccl_p2p_v2 p2p;
		struct nccl_proxy_op_descriptor proxy_op;
		struct nccl_proxy_step_descriptor proxy_step;
	};
};

struct nccl_event_v3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v3 collective;
		struct nccl_p2p_v2 p2p;
		struct nccl_proxy_op_descriptor proxy_op;
		struct nccl_proxy_step_descriptor proxy_step;
		struct {
			uint8_t channel;
		} kernel_channel;
		struct nccl_net_plugin_event_descriptor net_plugin;
	};
};

/* ---- v4 ---- */

struct nccl_collective_v4 {
	uint64_t sequence;
	const char *function;
	void const *send_buffer;
	void *receive_buffer;
	size_t count;
	int root;
	const char *data_type;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_p2p_v4 {
	const char *function;
	void *buffer;
	const char *data_type;
	size_t count;
	int peer;
	uint8_t channels;
};

struct nccl_event_v4 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v4 collective;
		struct nccl_p2p_v4 p2p;
		struct nccl_proxy_op_descriptor proxy_op;
		struct nccl_proxy_step_descriptor proxy_step;
		struct nccl_kernel_channel_descriptor kernel_channel;
		struct nccl_net_plugin_event_descriptor net_plugin;
	};
};

/* v4 to v7 */
union nccl_state_v4 {
	size_t bytes;      /* proxy step */
	int appended;      /* proxy control */
	void *data;        /* net plugin */
	uint64_t gpu_time; /* kernel channel, kernel phase */
};

/* ---- v5, v6 ---- */

struct nccl_collective_v5 {
	uint64_t sequence;
	const char *function;
	void const *send_buffer;
	void *receive_buffer;
	size_t count;
	int root;
	const char *data_type;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
	void *group;
};

struct nccl_p2p_v5 {
	const char *function;
	void *buffer;
	const char *data_type;
	size_t count;
	int peer;
	uint8_t channels;
	void *group;
};

struct nccl_collective_api_v5 {
	const char *function;
	size_t count;
	const char *data_type;
	int root;
	void *stream;
	bool captured;
};

struct nccl_p2p_api_v5 {
	const char *function;
	size_t count;
	const char *data_type;
	void *stream;
	bool captured;
};

struct nccl_event_v5 {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v5 collective;
		struct nccl_p2p_v5 p2p;
		struct nccl_proxy_op_descriptor proxy_op;
		struct nccl_proxy_step_descriptor proxy_step;
		struct nccl_kernel_channel_descriptor kernel_channel;
		struct nccl_net_plugin_event_descriptor net_plugin;
		struct nccl_group_api_descriptor group_api;
		struct nccl_collective_api_v5 collective_api;
		struct nccl_p2p_api_v5 p2p_api;
		struct nccl_kernel_launch_descriptor kernel_launch;
	};
};

/* v6 has the copy engine's events, and is as large as v5. */
struct nccl_event_v6 {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v5 collective;
		struct nccl_p2p_v5 p2p;
		struct nccl_proxy_op_descriptor proxy_op;
		struct nccl_proxy_step_descriptor proxy_step;
		struct nccl_kernel_channel_descriptor kernel_channel;
		struct nccl_net_plugin_event_descriptor net_plugin;
		struct nccl_group_api_descriptor group_api;
		struct nccl_collective_api_v5 collective_api;
		struct nccl_p2p_api_v5 p2p_api;
		struct nccl_kernel_launch_descriptor kernel_launch;
		struct nccl_ce_collective_descriptor ce_collective;
		struct nccl_ce_sync_descriptor ce_sync;
		struct nccl_ce_batch_descriptor ce_batch;
	};
};

/* ---- v7: tags of the user's, and phases of kernels ---- */

struct nccl_collective_v7 {
	uint64_t sequence;
	const char *function;
	void const *send_buffer;
	void *receive_buffer;
	size_t count;
	int root;
	const char *data_type;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
	void *group;
	const char *kernel_variant;
	bool is_symmetric;
	uint64_t user_tag;
};

struct nccl_p2p_v7 {
	const char *function;
	void *buffer;
	const char *data_type;
	size_t count;
	int peer;
	uint8_t channels;
	void *group;
	uint64_t user_tag;
};

struct nccl_collective_api_v7 {
	const char *function;
	size_t count;
	const char *data_type;
	int root;
	void *stream;
	bool captured;
	uint64_t user_tag;
};

struct nccl_p2p_api_v7 {
	const char *function;
	size_t count;
	const char *data_type;
	void *stream;
	bool captured;
	uint64_t user_tag;
};

struct nccl_ce_collective_v7 {
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
	uint64_t user_tag;
};

struct nccl_kernel_phase_descriptor {
	uint8_t channel, phase;
	const char *name;
	uint64_t gpu_time;
};

struct nccl_event_v7 {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v7 collective;
		struct nccl_p2p_v7 p2p;
		struct nccl_proxy_op_descriptor proxy_op;
		struct nccl_proxy_step_descriptor proxy_step;
		struct nccl_kernel_channel_descriptor kernel_channel;
		struct nccl_net_plugin_event_descriptor net_plugin;
		struct nccl_group_api_descriptor group_api;
		struct nccl_collective_api_v7 collective_api;
		struct nccl_p2p_api_v7 p2p_api;
		struct nccl_kernel_launch_descriptor kernel_launch;
		struct nccl_ce_collective_v7 ce_collective;
		struct nccl_ce_sync_descriptor ce_sync;
		struct nccl_ce_batch_descriptor ce_batch;
		struct nccl_kernel_phase_descriptor kernel_phase;
	};
};

#endif

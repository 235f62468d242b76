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
enum nccl_state {
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

struct nccl_proxy_op {
	int pid;
	uint8_t channel;
	int peer, steps, chunk_size, is_send;
};

struct nccl_proxy_step {
	int step;
};

struct nccl_net_plugin {
	int64_t id; /* low 16 bits version, then 1 InfiniBand, 2 socket */
	void *data;
};

struct nccl_kernel_channel {
	uint8_t channel;
	uint64_t gpu_time; /* pTimer */
};

struct nccl_group_api {
	bool captured;
	int depth;
};

struct nccl_kernel_launch {
	void *stream;
};

struct nccl_ce_collective {
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

struct nccl_ce_sync {
	bool complete;
	int ranks;
};

struct nccl_ce_batch {
	int operations;
	size_t bytes;
	bool intra_batch;
};

/* What the net plugins of NCCL itself put into nccl_net_plugin.data, version 1. */
struct nccl_net_infiniband {
	uint8_t type; /* 1: queue pair */
	uint8_t padding[7];
	int device;
	uint64_t work_id;
	int opcode, queue_pair;
	size_t length;
};

struct nccl_net_socket {
	uint8_t type; /* 1 */
	uint8_t padding[7];
	int descriptor, operation;
	size_t length;
};

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
		struct nccl_proxy_op proxy_op;
		struct nccl_proxy_step proxy_step;
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
		struct nccl_proxy_op proxy_op;
		struct nccl_proxy_step proxy_step;
	};
};

struct nccl_event_v3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v3 collective;
		struct nccl_p2p_v2 p2p;
		struct nccl_proxy_op proxy_op;
		struct nccl_proxy_step proxy_step;
		struct {
			uint8_t channel;
		} kernel_channel;
		struct nccl_net_plugin net_plugin;
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
		struct nccl_proxy_op proxy_op;
		struct nccl_proxy_step proxy_step;
		struct nccl_kernel_channel kernel_channel;
		struct nccl_net_plugin net_plugin;
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
		struct nccl_proxy_op proxy_op;
		struct nccl_proxy_step proxy_step;
		struct nccl_kernel_channel kernel_channel;
		struct nccl_net_plugin net_plugin;
		struct nccl_group_api group_api;
		struct nccl_collective_api_v5 collective_api;
		struct nccl_p2p_api_v5 p2p_api;
		struct nccl_kernel_launch kernel_launch;
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
		struct nccl_proxy_op proxy_op;
		struct nccl_proxy_step proxy_step;
		struct nccl_kernel_channel kernel_channel;
		struct nccl_net_plugin net_plugin;
		struct nccl_group_api group_api;
		struct nccl_collective_api_v5 collective_api;
		struct nccl_p2p_api_v5 p2p_api;
		struct nccl_kernel_launch kernel_launch;
		struct nccl_ce_collective ce_collective;
		struct nccl_ce_sync ce_sync;
		struct nccl_ce_batch ce_batch;
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

struct nccl_kernel_phase {
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
		struct nccl_proxy_op proxy_op;
		struct nccl_proxy_step proxy_step;
		struct nccl_kernel_channel kernel_channel;
		struct nccl_net_plugin net_plugin;
		struct nccl_group_api group_api;
		struct nccl_collective_api_v7 collective_api;
		struct nccl_p2p_api_v7 p2p_api;
		struct nccl_kernel_launch kernel_launch;
		struct nccl_ce_collective_v7 ce_collective;
		struct nccl_ce_sync ce_sync;
		struct nccl_ce_batch ce_batch;
		struct nccl_kernel_phase kernel_phase;
	};
};

/* ---- the exported objects ---- */

#define NCCL_PROFILER(version, state_type)                                                         \
	struct nccl_profiler_v##version {                                                          \
		const char *name;                                                                  \
		NCCL_INIT_##version;                                                               \
		int (*start)(void *context, void **handle, struct nccl_event_v##version *event);   \
		int (*stop)(void *handle);                                                         \
		int (*state)(void *handle, int state, state_type *arguments);                      \
		int (*finalize)(void *context);                                                    \
		/* Forks of NCCL use the same names for longer structures: they find NULL. */      \
		void *padding[10];                                                                 \
	}

#define NCCL_INIT_1 int (*init)(void **context, int *mask)
#define NCCL_INIT_2 NCCL_INIT_1
#define NCCL_INIT_3 NCCL_INIT_1
#define NCCL_INIT_4                                                                                \
	int (*init)(void **context, int *mask, const char *name, uint64_t hash, int nodes,         \
		    int ranks, int rank, nccl_logger logger)
#define NCCL_INIT_5                                                                                \
	int (*init)(void **context, uint64_t hash, int *mask, const char *name, int nodes,         \
		    int ranks, int rank, nccl_logger logger)
#define NCCL_INIT_6 NCCL_INIT_5
#define NCCL_INIT_7 NCCL_INIT_5

NCCL_PROFILER(1, union nccl_state_v1);
NCCL_PROFILER(2, union nccl_state_v1);
NCCL_PROFILER(3, union nccl_state_v1);
NCCL_PROFILER(4, union nccl_state_v4);
NCCL_PROFILER(5, union nccl_state_v4);
NCCL_PROFILER(6, union nccl_state_v4);
NCCL_PROFILER(7, union nccl_state_v4);

/* ---- where everything is ---- */

#define NCCL_AT(version, member, offset)                                                           \
	_Static_assert(offsetof(struct nccl_event_v##version, member) == (offset),                 \
		       "v" #version " " #member)
#define NCCL_SIZE(version, size)                                                                   \
	_Static_assert(sizeof(struct nccl_event_v##version) == (size), "v" #version);              \
	NCCL_AT(version, type, 0);                                                                 \
	NCCL_AT(version, parent, 8);                                                               \
	NCCL_AT(version, rank, 16);                                                                \
	NCCL_AT(version, proxy_op.pid, 24);                                                        \
	NCCL_AT(version, proxy_op.channel, 28);                                                    \
	NCCL_AT(version, proxy_op.peer, 32);                                                       \
	NCCL_AT(version, proxy_op.steps, 36);                                                      \
	NCCL_AT(version, proxy_op.chunk_size, 40);                                                 \
	NCCL_AT(version, proxy_op.is_send, 44);                                                    \
	NCCL_AT(version, proxy_step.step, 24)
#define NCCL_COLLECTIVE_NAMED(version)                                                             \
	NCCL_AT(version, collective.name, 24);                                                     \
	NCCL_AT(version, collective.hash, 32);                                                     \
	NCCL_AT(version, collective.sequence, 40);                                                 \
	NCCL_AT(version, collective.function, 48);                                                 \
	NCCL_AT(version, collective.send_buffer, 56);                                              \
	NCCL_AT(version, collective.receive_buffer, 64);                                           \
	NCCL_AT(version, collective.count, 72);                                                    \
	NCCL_AT(version, collective.root, 80);                                                     \
	NCCL_AT(version, p2p.name, 24);                                                            \
	NCCL_AT(version, p2p.hash, 32);                                                            \
	NCCL_AT(version, p2p.function, 40);                                                        \
	NCCL_AT(version, p2p.buffer, 48);                                                          \
	NCCL_AT(version, p2p.data_type, 56);                                                       \
	NCCL_AT(version, p2p.count, 64);                                                           \
	NCCL_AT(version, p2p.peer, 72)
#define NCCL_COLLECTIVE(version)                                                                   \
	NCCL_AT(version, collective.sequence, 24);                                                 \
	NCCL_AT(version, collective.function, 32);                                                 \
	NCCL_AT(version, collective.send_buffer, 40);                                              \
	NCCL_AT(version, collective.receive_buffer, 48);                                           \
	NCCL_AT(version, collective.count, 56);                                                    \
	NCCL_AT(version, collective.root, 64);                                                     \
	NCCL_AT(version, collective.data_type, 72);                                                \
	NCCL_AT(version, collective.channels, 80);                                                 \
	NCCL_AT(version, collective.warps, 81);                                                    \
	NCCL_AT(version, collective.algorithm, 88);                                                \
	NCCL_AT(version, collective.protocol, 96);                                                 \
	NCCL_AT(version, p2p.function, 24);                                                        \
	NCCL_AT(version, p2p.buffer, 32);                                                          \
	NCCL_AT(version, p2p.data_type, 40);                                                       \
	NCCL_AT(version, p2p.count, 48);                                                           \
	NCCL_AT(version, p2p.peer, 56);                                                            \
	NCCL_AT(version, p2p.channels, 60);                                                        \
	NCCL_AT(version, kernel_channel.channel, 24);                                              \
	NCCL_AT(version, kernel_channel.gpu_time, 32);                                             \
	NCCL_AT(version, net_plugin.id, 24);                                                       \
	NCCL_AT(version, net_plugin.data, 32)
#define NCCL_API_EVENTS(version)                                                                   \
	NCCL_COLLECTIVE(version);                                                                  \
	NCCL_AT(version, collective.group, 104);                                                   \
	NCCL_AT(version, p2p.group, 64);                                                           \
	NCCL_AT(version, group_api.captured, 24);                                                  \
	NCCL_AT(version, group_api.depth, 28);                                                     \
	NCCL_AT(version, collective_api.function, 24);                                             \
	NCCL_AT(version, collective_api.count, 32);                                                \
	NCCL_AT(version, collective_api.data_type, 40);                                            \
	NCCL_AT(version, collective_api.root, 48);                                                 \
	NCCL_AT(version, collective_api.stream, 56);                                               \
	NCCL_AT(version, collective_api.captured, 64);                                             \
	NCCL_AT(version, p2p_api.function, 24);                                                    \
	NCCL_AT(version, p2p_api.count, 32);                                                       \
	NCCL_AT(version, p2p_api.data_type, 40);                                                   \
	NCCL_AT(version, p2p_api.stream, 48);                                                      \
	NCCL_AT(version, p2p_api.captured, 56);                                                    \
	NCCL_AT(version, kernel_launch.stream, 24)
#define NCCL_COPY_ENGINE(version)                                                                  \
	NCCL_API_EVENTS(version);                                                                  \
	NCCL_AT(version, ce_collective.sequence, 24);                                              \
	NCCL_AT(version, ce_collective.function, 32);                                              \
	NCCL_AT(version, ce_collective.send_buffer, 40);                                           \
	NCCL_AT(version, ce_collective.receive_buffer, 48);                                        \
	NCCL_AT(version, ce_collective.count, 56);                                                 \
	NCCL_AT(version, ce_collective.root, 64);                                                  \
	NCCL_AT(version, ce_collective.data_type, 72);                                             \
	NCCL_AT(version, ce_collective.synchronisation, 80);                                       \
	NCCL_AT(version, ce_collective.intra_batch, 88);                                           \
	NCCL_AT(version, ce_collective.batch_size, 92);                                            \
	NCCL_AT(version, ce_collective.batches, 96);                                               \
	NCCL_AT(version, ce_collective.ce_sequence, 100);                                          \
	NCCL_AT(version, ce_collective.stream, 104);                                               \
	NCCL_AT(version, ce_sync.complete, 24);                                                    \
	NCCL_AT(version, ce_sync.ranks, 28);                                                       \
	NCCL_AT(version, ce_batch.operations, 24);                                                 \
	NCCL_AT(version, ce_batch.bytes, 32);                                                      \
	NCCL_AT(version, ce_batch.intra_batch, 40)

NCCL_SIZE(1, 120);
NCCL_COLLECTIVE_NAMED(1);
NCCL_AT(1, collective.data_type, 84);
NCCL_AT(1, collective.operation, 88);
NCCL_AT(1, collective.traffic_bytes, 96);
NCCL_AT(1, collective.channels, 104);
NCCL_AT(1, collective.warps, 105);
NCCL_AT(1, collective.algorithm, 106);
NCCL_AT(1, collective.protocol, 107);
NCCL_AT(1, collective.is_collnet, 108);
NCCL_AT(1, collective.is_nvls, 112);
NCCL_SIZE(2, 128);
NCCL_COLLECTIVE_NAMED(2);
NCCL_AT(2, collective.data_type, 88);
NCCL_AT(2, collective.traffic_bytes, 96);
NCCL_AT(2, collective.channels, 104);
NCCL_AT(2, collective.warps, 105);
NCCL_AT(2, collective.algorithm, 112);
NCCL_AT(2, collective.protocol, 120);
NCCL_SIZE(3, 120);
NCCL_COLLECTIVE_NAMED(3);
NCCL_AT(3, collective.data_type, 88);
NCCL_AT(3, collective.channels, 96);
NCCL_AT(3, collective.warps, 97);
NCCL_AT(3, collective.algorithm, 104);
NCCL_AT(3, collective.protocol, 112);
NCCL_AT(3, kernel_channel.channel, 24);
NCCL_AT(3, net_plugin.id, 24);
NCCL_AT(3, net_plugin.data, 32);
NCCL_SIZE(4, 104);
NCCL_COLLECTIVE(4);
NCCL_SIZE(5, 112);
NCCL_API_EVENTS(5);
NCCL_SIZE(6, 112);
NCCL_COPY_ENGINE(6);
NCCL_SIZE(7, 136);
NCCL_COPY_ENGINE(7);
NCCL_AT(7, collective.kernel_variant, 112);
NCCL_AT(7, collective.is_symmetric, 120);
NCCL_AT(7, collective.user_tag, 128);
NCCL_AT(7, p2p.user_tag, 72);
NCCL_AT(7, collective_api.user_tag, 72);
NCCL_AT(7, p2p_api.user_tag, 64);
NCCL_AT(7, ce_collective.user_tag, 112);
NCCL_AT(7, kernel_phase.channel, 24);
NCCL_AT(7, kernel_phase.phase, 25);
NCCL_AT(7, kernel_phase.name, 32);
NCCL_AT(7, kernel_phase.gpu_time, 40);
_Static_assert(sizeof(union nccl_state_v1) == 16 && sizeof(union nccl_state_v4) == 8, "states");
_Static_assert(offsetof(struct nccl_profiler_v7, padding) == 48, "six words");
_Static_assert(offsetof(struct nccl_net_infiniband, length) == 32 &&
		       offsetof(struct nccl_net_infiniband, work_id) == 16 &&
		       offsetof(struct nccl_net_infiniband, queue_pair) == 28,
	       "net plugin InfiniBand v1");
_Static_assert(offsetof(struct nccl_net_socket, length) == 16 &&
		       offsetof(struct nccl_net_socket, operation) == 12,
	       "net plugin socket v1");

#endif

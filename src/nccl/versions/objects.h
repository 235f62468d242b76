/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The objects that the plugin exports, one for each version of NCCL's profiler API.
 */
#ifndef KYMO_NCCL_VERSIONS_OBJECTS_H
#define KYMO_NCCL_VERSIONS_OBJECTS_H

#include "nccl/versions/descriptors.h"

/* ---- the exported objects ---- */

#define NCCL_DECLARE_PROFILER_STRUCT(version, state_type)                                          \
	struct nccl_profiler_v##version {                                                          \
		const char *name;                                                                  \
		NCCL_DECLARE_INIT_MEMBER_##version;                                                \
		int (*start)(void *context, void **handle, struct nccl_event_v##version *event);   \
		int (*stop)(void *handle);                                                         \
		int (*state)(void *handle, int state, state_type *arguments);                      \
		int (*finalize)(void *context);                                                    \
		/* Forks of NCCL use the same names for longer structures: they find NULL. */      \
		void *padding[10];                                                                 \
	}

#define NCCL_DECLARE_INIT_MEMBER_1 int (*init)(void **context, int *mask)
#define NCCL_DECLARE_INIT_MEMBER_2 NCCL_DECLARE_INIT_MEMBER_1
#define NCCL_DECLARE_INIT_MEMBER_3 NCCL_DECLARE_INIT_MEMBER_1
#define NCCL_DECLARE_INIT_MEMBER_4                                                                 \
	int (*init)(void **context, int *mask, const char *name, uint64_t hash, int nodes,         \
		    int ranks, int rank, nccl_logger logger)
#define NCCL_DECLARE_INIT_MEMBER_5                                                                 \
	int (*init)(void **context, uint64_t hash, int *mask, const char *name, int nodes,         \
		    int ranks, int rank, nccl_logger logger)
#define NCCL_DECLARE_INIT_MEMBER_6 NCCL_DECLARE_INIT_MEMBER_5
#define NCCL_DECLARE_INIT_MEMBER_7 NCCL_DECLARE_INIT_MEMBER_5

NCCL_DECLARE_PROFILER_STRUCT(1, union nccl_state_v1);
NCCL_DECLARE_PROFILER_STRUCT(2, union nccl_state_v1);
NCCL_DECLARE_PROFILER_STRUCT(3, union nccl_state_v1);
NCCL_DECLARE_PROFILER_STRUCT(4, union nccl_state_v4);
NCCL_DECLARE_PROFILER_STRUCT(5, union nccl_state_v4);
NCCL_DECLARE_PROFILER_STRUCT(6, union nccl_state_v4);
NCCL_DECLARE_PROFILER_STRUCT(7, union nccl_state_v4);

/* ---- where everything is ---- */

#define NCCL_CHECK_OFFSET(version, member, offset)                                                 \
	_Static_assert(offsetof(struct nccl_event_v##version, member) == (offset),                 \
		       "v" #version " " #member)
#define NCCL_CHECK_SIZE_AND_COMMON_OFFSETS(version, size)                                          \
	_Static_assert(sizeof(struct nccl_event_v##version) == (size), "v" #version);              \
	NCCL_CHECK_OFFSET(version, type, 0);                                                       \
	NCCL_CHECK_OFFSET(version, parent, 8);                                                     \
	NCCL_CHECK_OFFSET(version, rank, 16);                                                      \
	NCCL_CHECK_OFFSET(version, proxy_op.pid, 24);                                              \
	NCCL_CHECK_OFFSET(version, proxy_op.channel, 28);                                          \
	NCCL_CHECK_OFFSET(version, proxy_op.peer, 32);                                             \
	NCCL_CHECK_OFFSET(version, proxy_op.steps, 36);                                            \
	NCCL_CHECK_OFFSET(version, proxy_op.chunk_size, 40);                                       \
	NCCL_CHECK_OFFSET(version, proxy_op.is_send, 44);                                          \
	NCCL_CHECK_OFFSET(version, proxy_step.step, 24)
#define NCCL_CHECK_NAMED_COLLECTIVE_OFFSETS(version)                                               \
	NCCL_CHECK_OFFSET(version, collective.name, 24);                                           \
	NCCL_CHECK_OFFSET(version, collective.hash, 32);                                           \
	NCCL_CHECK_OFFSET(version, collective.sequence, 40);                                       \
	NCCL_CHECK_OFFSET(version, collective.function, 48);                                       \
	NCCL_CHECK_OFFSET(version, collective.send_buffer, 56);                                    \
	NCCL_CHECK_OFFSET(version, collective.receive_buffer, 64);                                 \
	NCCL_CHECK_OFFSET(version, collective.count, 72);                                          \
	NCCL_CHECK_OFFSET(version, collective.root, 80);                                           \
	NCCL_CHECK_OFFSET(version, p2p.name, 24);                                                  \
	NCCL_CHECK_OFFSET(version, p2p.hash, 32);                                                  \
	NCCL_CHECK_OFFSET(version, p2p.function, 40);                                              \
	NCCL_CHECK_OFFSET(version, p2p.buffer, 48);                                                \
	NCCL_CHECK_OFFSET(version, p2p.data_type, 56);                                             \
	NCCL_CHECK_OFFSET(version, p2p.count, 64);                                                 \
	NCCL_CHECK_OFFSET(version, p2p.peer, 72)
#define NCCL_CHECK_COLLECTIVE_OFFSETS(version)                                                     \
	NCCL_CHECK_OFFSET(version, collective.sequence, 24);                                       \
	NCCL_CHECK_OFFSET(version, collective.function, 32);                                       \
	NCCL_CHECK_OFFSET(version, collective.send_buffer, 40);                                    \
	NCCL_CHECK_OFFSET(version, collective.receive_buffer, 48);                                 \
	NCCL_CHECK_OFFSET(version, collective.count, 56);                                          \
	NCCL_CHECK_OFFSET(version, collective.root, 64);                                           \
	NCCL_CHECK_OFFSET(version, collective.data_type, 72);                                      \
	NCCL_CHECK_OFFSET(version, collective.channels, 80);                                       \
	NCCL_CHECK_OFFSET(version, collective.warps, 81);                                          \
	NCCL_CHECK_OFFSET(version, collective.algorithm, 88);                                      \
	NCCL_CHECK_OFFSET(version, collective.protocol, 96);                                       \
	NCCL_CHECK_OFFSET(version, p2p.function, 24);                                              \
	NCCL_CHECK_OFFSET(version, p2p.buffer, 32);                                                \
	NCCL_CHECK_OFFSET(version, p2p.data_type, 40);                                             \
	NCCL_CHECK_OFFSET(version, p2p.count, 48);                                                 \
	NCCL_CHECK_OFFSET(version, p2p.peer, 56);                                                  \
	NCCL_CHECK_OFFSET(version, p2p.channels, 60);                                              \
	NCCL_CHECK_OFFSET(version, kernel_channel.channel, 24);                                    \
	NCCL_CHECK_OFFSET(version, kernel_channel.gpu_time, 32);                                   \
	NCCL_CHECK_OFFSET(version, net_plugin.id, 24);                                             \
	NCCL_CHECK_OFFSET(version, net_plugin.data, 32)
#define NCCL_CHECK_API_EVENT_OFFSETS(version)                                                      \
	NCCL_CHECK_COLLECTIVE_OFFSETS(version);                                                    \
	NCCL_CHECK_OFFSET(version, collective.group, 104);                                         \
	NCCL_CHECK_OFFSET(version, p2p.group, 64);                                                 \
	NCCL_CHECK_OFFSET(version, group_api.captured, 24);                                        \
	NCCL_CHECK_OFFSET(version, group_api.depth, 28);                                           \
	NCCL_CHECK_OFFSET(version, collective_api.function, 24);                                   \
	NCCL_CHECK_OFFSET(version, collective_api.count, 32);                                      \
	NCCL_CHECK_OFFSET(version, collective_api.data_type, 40);                                  \
	NCCL_CHECK_OFFSET(version, collective_api.root, 48);                                       \
	NCCL_CHECK_OFFSET(version, collective_api.stream, 56);                                     \
	NCCL_CHECK_OFFSET(version, collective_api.captured, 64);                                   \
	NCCL_CHECK_OFFSET(version, p2p_api.function, 24);                                          \
	NCCL_CHECK_OFFSET(version, p2p_api.count, 32);                                             \
	NCCL_CHECK_OFFSET(version, p2p_api.data_type, 40);                                         \
	NCCL_CHECK_OFFSET(version, p2p_api.stream, 48);                                            \
	NCCL_CHECK_OFFSET(version, p2p_api.captured, 56);                                          \
	NCCL_CHECK_OFFSET(version, kernel_launch.stream, 24)
#define NCCL_CHECK_COPY_ENGINE_OFFSETS(version)                                                    \
	NCCL_CHECK_API_EVENT_OFFSETS(version);                                                     \
	NCCL_CHECK_OFFSET(version, ce_collective.sequence, 24);                                    \
	NCCL_CHECK_OFFSET(version, ce_collective.function, 32);                                    \
	NCCL_CHECK_OFFSET(version, ce_collective.send_buffer, 40);                                 \
	NCCL_CHECK_OFFSET(version, ce_collective.receive_buffer, 48);                              \
	NCCL_CHECK_OFFSET(version, ce_collective.count, 56);                                       \
	NCCL_CHECK_OFFSET(version, ce_collective.root, 64);                                        \
	NCCL_CHECK_OFFSET(version, ce_collective.data_type, 72);                                   \
	NCCL_CHECK_OFFSET(version, ce_collective.synchronisation, 80);                             \
	NCCL_CHECK_OFFSET(version, ce_collective.intra_batch, 88);                                 \
	NCCL_CHECK_OFFSET(version, ce_collective.batch_size, 92);                                  \
	NCCL_CHECK_OFFSET(version, ce_collective.batches, 96);                                     \
	NCCL_CHECK_OFFSET(version, ce_collective.ce_sequence, 100);                                \
	NCCL_CHECK_OFFSET(version, ce_collective.stream, 104);                                     \
	NCCL_CHECK_OFFSET(version, ce_sync.complete, 24);                                          \
	NCCL_CHECK_OFFSET(version, ce_sync.ranks, 28);                                             \
	NCCL_CHECK_OFFSET(version, ce_batch.operations, 24);                                       \
	NCCL_CHECK_OFFSET(version, ce_batch.bytes, 32);                                            \
	NCCL_CHECK_OFFSET(version, ce_batch.intra_batch, 40)

NCCL_CHECK_SIZE_AND_COMMON_OFFSETS(1, 120);
NCCL_CHECK_NAMED_COLLECTIVE_OFFSETS(1);
NCCL_CHECK_OFFSET(1, collective.data_type, 84);
NCCL_CHECK_OFFSET(1, collective.operation, 88);
NCCL_CHECK_OFFSET(1, collective.traffic_bytes, 96);
NCCL_CHECK_OFFSET(1, collective.channels, 104);
NCCL_CHECK_OFFSET(1, collective.warps, 105);
NCCL_CHECK_OFFSET(1, collective.algorithm, 106);
NCCL_CHECK_OFFSET(1, collective.protocol, 107);
NCCL_CHECK_OFFSET(1, collective.is_collnet, 108);
NCCL_CHECK_OFFSET(1, collective.is_nvls, 112);
NCCL_CHECK_SIZE_AND_COMMON_OFFSETS(2, 128);
NCCL_CHECK_NAMED_COLLECTIVE_OFFSETS(2);
NCCL_CHECK_OFFSET(2, collective.data_type, 88);
NCCL_CHECK_OFFSET(2, collective.traffic_bytes, 96);
NCCL_CHECK_OFFSET(2, collective.channels, 104);
NCCL_CHECK_OFFSET(2, collective.warps, 105);
NCCL_CHECK_OFFSET(2, collective.algorithm, 112);
NCCL_CHECK_OFFSET(2, collective.protocol, 120);
NCCL_CHECK_SIZE_AND_COMMON_OFFSETS(3, 120);
NCCL_CHECK_NAMED_COLLECTIVE_OFFSETS(3);
NCCL_CHECK_OFFSET(3, collective.data_type, 88);
NCCL_CHECK_OFFSET(3, collective.channels, 96);
NCCL_CHECK_OFFSET(3, collective.warps, 97);
NCCL_CHECK_OFFSET(3, collective.algorithm, 104);
NCCL_CHECK_OFFSET(3, collective.protocol, 112);
NCCL_CHECK_OFFSET(3, kernel_channel.channel, 24);
NCCL_CHECK_OFFSET(3, net_plugin.id, 24);
NCCL_CHECK_OFFSET(3, net_plugin.data, 32);
NCCL_CHECK_SIZE_AND_COMMON_OFFSETS(4, 104);
NCCL_CHECK_COLLECTIVE_OFFSETS(4);
NCCL_CHECK_SIZE_AND_COMMON_OFFSETS(5, 112);
NCCL_CHECK_API_EVENT_OFFSETS(5);
NCCL_CHECK_SIZE_AND_COMMON_OFFSETS(6, 112);
NCCL_CHECK_COPY_ENGINE_OFFSETS(6);
NCCL_CHECK_SIZE_AND_COMMON_OFFSETS(7, 136);
NCCL_CHECK_COPY_ENGINE_OFFSETS(7);
NCCL_CHECK_OFFSET(7, collective.kernel_variant, 112);
NCCL_CHECK_OFFSET(7, collective.is_symmetric, 120);
NCCL_CHECK_OFFSET(7, collective.user_tag, 128);
NCCL_CHECK_OFFSET(7, p2p.user_tag, 72);
NCCL_CHECK_OFFSET(7, collective_api.user_tag, 72);
NCCL_CHECK_OFFSET(7, p2p_api.user_tag, 64);
NCCL_CHECK_OFFSET(7, ce_collective.user_tag, 112);
NCCL_CHECK_OFFSET(7, kernel_phase.channel, 24);
NCCL_CHECK_OFFSET(7, kernel_phase.phase, 25);
NCCL_CHECK_OFFSET(7, kernel_phase.name, 32);
NCCL_CHECK_OFFSET(7, kernel_phase.gpu_time, 40);
_Static_assert(sizeof(union nccl_state_v1) == 16 && sizeof(union nccl_state_v4) == 8, "states");
_Static_assert(offsetof(struct nccl_profiler_v7, padding) == 48, "six words");
_Static_assert(offsetof(struct nccl_infiniband_net_event_data, length) == 32 &&
		       offsetof(struct nccl_infiniband_net_event_data, work_id) == 16 &&
		       offsetof(struct nccl_infiniband_net_event_data, queue_pair) == 28,
	       "net plugin InfiniBand v1");
_Static_assert(offsetof(struct nccl_socket_net_event_data, length) == 16 &&
		       offsetof(struct nccl_socket_net_event_data, operation) == 12,
	       "net plugin socket v1");

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL in the Perfetto trace, shared by the perfetto_nccl*.c files.
 *
 * A process's records become slices, sorted by time, and each slice goes to a lane of its track:
 * slices of a lane are nested, since an end closes whatever began last. What overlaps without being
 * nested (operations of several streams, network steps in flight together) goes to further lanes,
 * which readers show below the first one under the same name.
 *
 *   NCCL calls of thread T            API calls, launches, groups and the enqueuing of operations
 *   <communicator>, rank R            a group, with the tracks:
 *     operations on the GPU             first start to last stop of an operation's channels
 *     GPU channel C                     each channel by itself
 *     network channel C                 transfers of the proxy thread
 *     network channel C, steps          their steps
 *     proxy thread                      what it does between them
 *
 * Flows lead from an API call to its operation on the GPU, and from its enqueuing to its network
 * transfers. Operations that are one collective have the same correlation id on all ranks.
 */
#ifndef KYMO_OUTPUT_PERFETTO_NCCL_H
#define KYMO_OUTPUT_PERFETTO_NCCL_H

#include "analysis/nccl/nccl.h"
#include "output/perfetto/regions.h"

enum nccl_slice_kind {
	NCCL_SLICE_GROUP_CALL,
	NCCL_SLICE_CALL,
	NCCL_SLICE_LAUNCH,
	NCCL_SLICE_GROUP,
	NCCL_SLICE_ENQUEUE,
	NCCL_SLICE_GPU,
	NCCL_SLICE_CHANNEL,
	NCCL_SLICE_TRANSFER,
	NCCL_SLICE_STEP,
	NCCL_SLICE_PROXY_CONTROL,
	NCCL_SLICE_OTHER
};

#define NCCL_SLICE_NOT_ENDED_NS UINT64_MAX

struct nccl_slice {
	uint64_t start_ns, end_ns;  /* NCCL_SLICE_NOT_ENDED_NS: it did not end */
	uint64_t flow, correlation; /* 0: none */
	uint64_t sequence, bytes;
	double bus_bandwidth_gb_per_s;
	uint32_t track;    /* index in nccl_slices.tracks */
	uint32_t function; /* NCCL_INDEX_NONE: none */
	int32_t number;    /* peer, step, state or event kind */
	uint8_t kind;      /* nccl_slice_kind */
	bool sends, ends_flow, waits;
	uint8_t data_type, algorithm, protocol;
};

struct nccl_track_lane {
	uint64_t track_uuid;
	uint64_t *slice_ends_ns; /* of the open slices, outermost first */
	size_t depth, capacity;
};

struct nccl_track {
	uint32_t member_index; /* NCCL_INDEX_NONE: of the process */
	uint8_t kind;          /* nccl_slice_kind that goes there first */
	uint32_t number;       /* thread or channel */
	bool may_nest_slices;  /* slices may lie within each other */
	struct nccl_track_lane *lanes;
	size_t lane_count, lane_capacity;
};

struct nccl_slices {
	struct nccl_data *data;
	uint32_t process;
	struct nccl_slice *slices;
	size_t count, capacity;
	struct nccl_track *tracks;
	size_t track_count, track_capacity;
	struct id_map track_index_by_key;
	struct id_map slice_index_of_operation; /* id -> slice of its enqueuing */
	uint64_t *group_uuid_of_member; /* uuid by place in the process's members; 0: not described
					   yet */
};

/* nccl_slices.c: of one process. 0 or negative errno. */
int nccl_slices_collect(struct nccl_slices *slices, struct problem *problem);
void nccl_slices_deinit(struct nccl_slices *slices);

#endif

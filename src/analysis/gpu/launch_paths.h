/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Device time by the call path of its launch: LAUNCH_PATH records of the spool files, joined with
 * the kernels, copies and fills that name them. The work becomes part of the session's call tree
 * (MODEL_SOURCE_DEVICE), below the stack of its launch; what has no call path stands below a node
 * that says why. Kernels of a CUDA graph have the path of the graph's launch.
 */
#ifndef KYMO_ANALYSIS_GPU_LAUNCH_PATHS_H
#define KYMO_ANALYSIS_GPU_LAUNCH_PATHS_H

#include "analysis/gpu/ranges.h"
#include "analysis/session.h"

struct gpu_data;
struct spool_record_payload_cursor;

/* Why work has no call path. */
enum gpu_path_gap {
	GPU_PATH_GAP_LAUNCH_UNSEEN,
	GPU_PATH_GAP_NO_COLLECTOR,
	GPU_PATH_GAP_UNKNOWN_THREAD,
	GPU_PATH_GAP_NESTED,
	GPU_PATH_GAP_TOO_MANY,
	GPU_PATH_GAP_NOT_WRITTEN,
	GPU_PATH_GAP_RECORD_MISSING, /* the spool file, or the record in it */
	GPU_PATH_GAP_COUNT
};

struct gpu_launch_path_sums {
	bool is_recorded; /* call paths were asked for */
	struct gpu_work_sums all, complete;
	struct gpu_work_sums cut[SPOOL_STACK_END_COUNT]; /* by how the walk ended */
	struct gpu_work_sums gaps[GPU_PATH_GAP_COUNT];
};

const char *gpu_path_gap_get_text(enum gpu_path_gap gap);

/* ---- for kind.c ---- */

struct launch_path {
	uint64_t number, time_ns; /* ticks at first */
	uint64_t *frames;         /* innermost first */
	uint32_t count, node;     /* node: of the tree of addresses, once it is known */
	uint32_t waiting_count;   /* of the outermost frames: of another thread, which waited */
	enum spool_stack_end end;
	bool is_in_tree;
};

/* Of one process. */
struct launch_path_list {
	struct launch_path *paths;
	size_t count, capacity;
};

/* 0, -EBADMSG or -ENOMEM. */
int launch_path_list_read_record(struct launch_path_list *list, struct session *session,
				 struct spool_record_payload_cursor *payload);
/* NULL: there is none. The list is in order. */
struct launch_path *launch_path_list_find(const struct launch_path_list *list, uint64_t number);
int launch_path_compare_by_number(const void *left, const void *right);
void launch_path_list_deinit(struct launch_path_list *list);
/* When all samples were read: `lists` by process. 0 or -ENOMEM. */
int gpu_add_launched_work_to_tree(struct session *session, struct gpu_data *data,
				  struct launch_path_list *lists);

#endif

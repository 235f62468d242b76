/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a process gave to devices, for steps: work with the time of its launch, and ranges.
 */
#ifndef KYMO_ANALYSIS_GPU_STEP_WORK_H
#define KYMO_ANALYSIS_GPU_STEP_WORK_H

#include <stddef.h>
#include <stdint.h>

struct gpu_records_of_process;

enum step_work_class {
	STEP_WORK_COMPUTES,
	STEP_WORK_COMMUNICATES,
	STEP_WORK_COPIES,
	STEP_WORK_CLASS_COUNT
};

struct step_work {
	uint64_t start, end;
	uint64_t launch; /* when the call began; the start where it was not recorded */
	uint32_t agent;
	uint32_t id; /* the kernel's name (string), or the direction of a copy */
	uint32_t launch_path;
	enum step_work_class class;
	uint8_t is_launch_known;
};

/* A range that ended, on whatever thread. */
struct step_range {
	uint64_t begin, end;
	uint32_t name; /* string */
};

struct step_work_list {
	struct step_work *work; /* by agent and start */
	size_t work_count, work_capacity;
	struct step_range *ranges; /* by begin */
	size_t range_count, range_capacity;
};

/* 0 or -ENOMEM. */
int step_work_read(const struct gpu_records_of_process *process, struct step_work_list *ret);
void step_work_deinit(struct step_work_list *list);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Steps of a program that uses devices: iterations of a training loop, requests, frames. A step is
 * a range (NVTX, roctx) that the user names or that stands out, or it is found by the launches,
 * whose sequence repeats (step_find.h).
 *
 * On a device a step lasts from the first kernel that was launched in it to the first one that was
 * launched in the next; the last one ends with its last work. Each moment of it is one of five
 * parts, so that parts add up to the step: a kernel computes; else data are exchanged between
 * devices by kernels of NCCL and its like; else data are copied or filled; else the device has
 * nothing, because the next work was not launched yet, or although it was.
 */
#ifndef KYMO_ANALYSIS_GPU_STEPS_H
#define KYMO_ANALYSIS_GPU_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_records_of_process;
struct gpu_data;

enum gpu_step_part {
	GPU_STEP_COMPUTING,
	GPU_STEP_COMMUNICATION, /* that no computing hides */
	GPU_STEP_COPIES,        /* that neither hides */
	GPU_STEP_LATE_LAUNCH,   /* idle before the launch of the next work */
	GPU_STEP_QUEUED,        /* idle after it; also where that launch was not recorded */
	GPU_STEP_PART_COUNT
};

/* A step that takes longer than this times the median is slow. */
#define GPU_STEP_SLOW_FACTOR     1.2
#define GPU_STEPS_LEAST          3u /* fewer are no series */
#define GPU_STEP_DIFFERENCES_MAX 6u
#define GPU_STEPS_EXPLAINED_MAX  5u

struct gpu_step {
	uint64_t begin_ns, end_ns; /* CLOCK_BOOTTIME */
	uint64_t part_ns[GPU_STEP_PART_COUNT];
	uint32_t work_count; /* kernels, copies and fills that began in it */
	bool is_slow;
};

enum gpu_step_difference_kind {
	GPU_STEP_DIFFERENCE_KERNEL, /* id: string, the kernel's name */
	GPU_STEP_DIFFERENCE_COPY,   /* id: gpu_direction */
	GPU_STEP_DIFFERENCE_IDLE    /* id: launch path of the work that was launched late */
};

/* What slow steps have more of than the others, in ns a step. */
struct gpu_step_difference {
	enum gpu_step_difference_kind kind;
	uint32_t id;
	double slow_ns, other_ns;
};

/* One of the slowest steps, and what it has most more of than the steps that are not slow. */
struct gpu_step_explanation {
	size_t step;
	bool is_explained; /* else nothing of it stands out */
	struct gpu_step_difference difference;
};

enum gpu_step_source { GPU_STEPS_BY_RANGE, GPU_STEPS_BY_LAUNCHES };

/* The steps of one process on one device. */
struct gpu_step_series {
	uint32_t process; /* in gpu_data.processes */
	uint32_t agent;
	enum gpu_step_source source;
	const char *name; /* of the range, or of the kernel that is launched once a step, first */
	struct gpu_step *steps;
	size_t count, slow_count;
	/* The first step is slow, as programs load and compile then. It is no slow step, and in no
	 * sum. */
	bool starts_slowly;
	uint64_t median_ns, part_ns[GPU_STEP_PART_COUNT];
	/* Slow steps against the others; the most first. */
	struct gpu_step_difference differences[GPU_STEP_DIFFERENCES_MAX];
	size_t difference_count;
	struct gpu_step_explanation slowest[GPU_STEPS_EXPLAINED_MAX]; /* the slowest first */
	size_t slowest_count;
};

struct gpu_steps {
	struct gpu_step_series *series;
	size_t count, capacity;
	const char *missing_range; /* the name that was asked for, where no process has it; or NULL
				    */
};

/* Adds the series of one process. `wanted`: the name of a range; "auto" or NULL: what stands out;
 * "none". 0 or -ENOMEM. */
int gpu_steps_add_process(struct gpu_steps *steps, uint32_t number,
			  const struct gpu_records_of_process *process, const char *wanted);
/* The same for all processes of the data. `wanted` is kept. */
int gpu_steps_find(struct gpu_data *data, const char *wanted);
void gpu_steps_deinit(struct gpu_steps *steps);

/* "computing", "idle: launched late", ... */
const char *gpu_step_part_get_name(enum gpu_step_part part);

#endif
